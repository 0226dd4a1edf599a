// The grammar of Loop text, in the notation of ohm-js. Each line is matched on its own: by
// `Header`, then `Declaration`s up to a line `{`, then `Statement`s up to the `}` that ends the
// Loop. Lines that begin with `//` say something (lines of the header, comments of the kernel) and
// are read without the grammar. Character ranges stand where built-in rules would be memoised.

export const loopGrammar: string = String.raw`
  SinterLoop {
    Header      = "loop" name "(" kind ")" "grid" sizes "workgroup" sizes scalars?
    Declaration = Buffer | TileMap | Barriers
    Buffer      = ("global" | "workgroup") name ":" name "[" size "]" "tiled"? "read"?
    TileMap     = "map" name ":" name "[" size "]" "sizes" sizes "strides" List<size> "box" sizes
    Barriers    = "mbarriers" name ":" size

    Statement = Let | Var | For | If | Else | Close | Copies | Products | Registers | InitBarrier | Arrive
              | Await | CopyTile | ClearTile | PublishTiles | AsyncCopy | Atomic | Store | Mma | Wgmma | Assign | Barrier | Prefetch

    Let         = "let" name ":" type "=" Named
    Named       = Subgroup | Matrices | Shuffle | Value
    Subgroup    = "subgroup" monoid Value
    Matrices    = "matrices" Element transposed?
    Shuffle     = "shuffle" size Value
    Var         = "var" name ":" type "=" Value
    Assign      = name "=" Value
    Store       = Run ("=merge" | "=") Value
    Atomic      = Element "atomic" atomic Value
    For         = "for" name "in" Value ".." Value ("by" size)? "{"
    If          = "if" Value "{"
    Else        = "}" "else" "{"
    Close       = "}"
    Barrier     = barrier
    Prefetch    = prefetch Element
    Mma         = name "+=" "mma" element Value "," Value
    Copies      = "commit" "copies"             -- commit
                | "wait" "for" "copies" "but" size -- wait
    AsyncCopy   = Run "<-" Run "if" Value
    InitBarrier = Element "begins" "," "for" size
    Arrive      = "arrive" Element ("with" size "bytes")?
    Await       = "await" Element "phase" Value
    CopyTile    = Element "<-" name "(" List<Value> ")" "for" Element
    ClearTile   = "clear" Element
    PublishTiles = "publish" "tiles"
    Wgmma       = List<name> "+=" "wgmma" element (Tile | Value) "," Tile
    Tile        = Element transposed? "panel" size
    Products    = "commit" "products"                              -- commit
                | "wait" "for" "products" "but" size Into?  -- wait
                | "fence" List<name>                               -- fence
    Into        = "into" List<name>
    Registers   = ("grow" | "shrink") "to" size "registers"

    Element = name "[" Value "]"
    Run     = name "[" Value (":" size)? "]"

    Value     = Primary lane*
    Primary   = constant | place | scalar | Vector | Call | Load | name
    Vector    = "{" List<Value> "}"
    Call      = name wraps? into? "(" List<Value> ")"
    Load      = name "[" Value (":" size)? "?"? "]"
    List<one> = one ("," one)*

    constant (a constant)  = ("true" | "false") ~rest       -- flag
                           | "-"? digits "n"? ("_" type)?   -- number
                           | "-"? ("inf" | "nan") "_" type  -- special
    place                  = ("workgroup" | "local") "." ("x" | "y" | "z") ~rest      -- item
                           | "subgroup" "." ("place" | "number" | "count") ~rest      -- subgroup
    scalar                 = "scalar" "0".."9"+ "_" type
    lane                   = "." "0".."9"+
    wraps                  = ".wraps"
    into                   = "<" type ">"
    digits                 = "0".."9"+ ("." "0".."9"+)? exponent?
    exponent               = ("e" | "E") ("+" | "-")? "0".."9"+
    type  (a type)         = ("f32" | "i32" | "u32" | "bool" | "f64" | "i64" | "u64") ("x" ("16" | "8" | "2" | "4"))?
    kind  (a kind)         = (~")" any)*
    sizes (sizes)          = "0".."9"+ ("x" "0".."9"+)*
    size  (a whole number) = "0".."9"+
    name  (a name)         = ("a".."z" | "A".."Z" | "_") ("a".."z" | "A".."Z" | "_" | "0".."9")*
    rest                   = "a".."z" | "A".."Z" | "_" | "0".."9"
    monoid                 = ("sum" | "prod" | "min" | "max" | "and" | "or") ~rest
    atomic                 = ("add" | "mul" | "min" | "max" | "and" | "or") ~rest
    element                = ("f16" | "bf16" | "tf32") ~rest
    barrier                = "barrier" ~rest
    prefetch               = "prefetch" ~rest
    transposed             = "transposed" ~rest
    scalars                = "scalars" ~rest

    space := " " | "\t"
  }
`;

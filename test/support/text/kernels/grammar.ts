// The grammar of kernels' text, in the notation of ohm-js. Each line is matched on its own, as a
// `Line`. Character ranges are spelled out, because built-in rules such as `letter` would be
// memoised.

export const kernelGrammar: string = String.raw`
  SinterKernels {
    Line = Kernel | Pack | Reads | Nodes | Axes | Dynamic | Define | BodyKind | Write | Close | Field

    Kernel   = "kernel" name kind "flops" number "bytes" number "{"
    Close    = "}"
    Pack     = ref "=" name "[" size "]" "{" (Member ("," Member)*)? "}"
    Member   = ref "at" size "of" size
    Reads    = "reads" ref ("," ref)*
    Nodes    = "nodes" ref ("," ref)*
    Axes     = "axes" Axis ("," Axis)*
    Dynamic  = "dynamic" name ":" integer ".." integer "from" expr
    BodyKind = "body" kind
    Write    = "write" ref "[" Index "]" "=" expr part?
    Field    = name ":" Value

    Define = expr "=" Bare ":" name
    Bare   = "select" "(" expr "," expr ")" "where" Guard -- select
           | "index" "(" Index ")"                         -- index
           | "result" "(" ref ")"                          -- result
           | "scalar" "(" size ")"                         -- scalar
           | "constant" "(" number ")"                     -- constant
           | "random" "(" Args ")" "at" Index              -- random
           | "decode" name "(" Args ")" "at" Index         -- decode
           | ref "[" Index "]"                             -- read
           | name "(" Args ")"                             -- op
    Args   = expr ("," expr)*

    Value = List | Fields | ref | stage | expr | Axis | Inside | flag | number | word
    List   = "[" (Value ("," Value)*)? "]"
    Fields = "{" (Field ("," Field)*)? "}"
    Axis   = name "[" size "]"
    Inside = "(" Guard ")" -- guard
           | "(" Index ")" -- index

    Guard  = always | Ranges
    Ranges = Range ("&&" Range)*
    Range = Index "==" integer               -- is
          | integer "<=" Index "<=" integer  -- between
          | Index "<=" integer               -- most
          | Index ">=" integer               -- least

    Index  = Index "+" Term -- plus
           | Index "-" Term -- minus
           | "-" Term       -- negative
           | Term
    Term   = Term "*" size -- times
           | Term "/" size -- over
           | Term "%" size -- rest
           | "(" Index ")" -- inner
           | size          -- size
           | name "[" size "]" -- long
           | name          -- leaf

    ref    (a node such as %0)        = ("%" | "pack") "0".."9"+
    expr   (an expression such as e0) = "e" "0".."9"+ ~rest
    stage  (a stage)                  = "stage" "0".."9"+
    kind   (a kind)                   = rest (rest | "-")*
    name   (a name)                   = ("a".."z" | "A".."Z" | "_") rest*
    word   (a word)                   = "\"" (~"\"" any)* "\""
    size   (a whole number)           = "0".."9"+
    integer (an integer)              = "-"? "0".."9"+
    number (a number)                 = "nan" | "inf" | "-inf" | digits
    digits                            = "-"? "0".."9"+ ("." "0".."9"+)? exponent? "n"?
    exponent                          = ("e" | "E") ("+" | "-")? "0".."9"+
    flag   (true or false)            = ("true" | "false") ~rest
    always                            = "true" ~rest
    part                              = "part" ~rest
    rest                              = "a".."z" | "A".."Z" | "_" | "0".."9"

    space := " " | "\t" | "\r" | comment
    comment = "//" any*
  }
`;

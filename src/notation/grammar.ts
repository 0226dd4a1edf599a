// The grammar of index notation, in the notation of ohm-js (parsing expression grammars). A reduction
// is a name, what it runs over, a colon and what is folded; it is tried before a call, so that
// `max(k: x[k])` folds and `max(a, b)` compares.

export const indexGrammar: string = String.raw`
  IndexNotation {
    Program   = Statement (";"? Statement)* ";"?
    Statement = name "[" ListOf<Binder, ","> "]" "=" Expr
    Binder    = name ("<" whole)?

    Expr    = Or "?" Expr ":" Expr             -- choice
            | Or
    Or      = Or "||" And                      -- binary
            | And
    And     = And "&&" Compare                 -- binary
            | Compare
    Compare = Sum comparison Sum               -- binary
            | Sum
    Sum     = Sum ("+" | "-") Product          -- binary
            | Product
    Product = Product ("*" | "//" | "/" | "%") Sign -- binary
            | Sign
    Sign    = ("-" | "!") Sign                 -- unary
            | Power
    Power   = Primary "**" Sign                -- binary
            | Primary
    Primary = name "(" NonemptyListOf<Binder, ","> ":" Expr ")" -- reduction
            | name "(" ListOf<Expr, ","> ")"   -- call
            | name "[" ListOf<Expr, ","> "]"   -- access
            | "(" Expr ")"                     -- group
            | number                           -- number
            | name                             -- name

    comparison (a comparison) = "==" | "!=" | "<=" | ">=" | "<" | ">"
    name   (a name)         = first rest*
    first                   = "a".."z" | "A".."Z" | "_" | "$"
    rest                    = first | "0".."9"
    whole  (a whole number) = "0".."9"+ ~rest
    number (a number)       = "0".."9"+ ("." "0".."9"+)? exponent? ~rest
    exponent                = ("e" | "E") ("+" | "-")? "0".."9"+

    space += comment
    comment = "#" (~"\n" any)*
  }
`;

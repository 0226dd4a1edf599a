// The grammar of IR text, in the notation of ohm-js (parsing expression grammars). The text is a
// sequence of lines and each line is matched on its own, by `Header`, then `Statement`s, then
// `Close`: a packrat parser keeps a table per character, so a line at a time keeps memory flat for
// graphs of any size. Character ranges are spelled out, because built-in rules such as `letter`
// would be memoised.

export const irGrammar: string = String.raw`
  SinterGraph {
    Header    = "graph" "{"
    Statement = Open | Return | Node
    Close     = "}"

    Open       = region "=" "body" "{"
    Return     = "return" (ref ("," ref)*)?
    Node       = ref "=" name Inputs? Attributes? ":" Type
    Inputs     = "(" (ref ("," ref)*)? ")"
    Attributes = "{" (Attribute ("," Attribute)*)? "}"
    Attribute  = name ":" Value
    Type       = name "[" (Dim ("," Dim)*)? "]"
    Dim        = dimName ":" size ".." size  -- symbolic
               | size                        -- fixed

    Value (a value) = List | region | bigint | number | string | flag
    List  = "[" (Value ("," Value)*)? "]"

    ref    (a node such as %0)  = "%" "0".."9"+
    region (a body such as @0)  = "@" "0".."9"+
    name   (a name)             = first rest*
    dimName                     = name | string
    size   (a size)             = "0".."9"+
    bigint (an integer)         = "-"? "0".."9"+ "n"
    number (a number)           = "nan" | signed
    signed                      = "-"? magnitude
    magnitude                   = "inf" | digits
    digits                      = "0".."9"+ ("." "0".."9"+)? exponent?
    exponent                    = ("e" | "E") ("+" | "-")? "0".."9"+
    string (a string)           = "\"" character* "\""
    character                   = escape | " ".."!" | "#".."[" | "]".."\u{10FFFF}"
    escape                      = "\\" ("\"" | "\\" | "b" | "f" | "n" | "r" | "t" | code)
    code                        = "u" hexDigit hexDigit hexDigit hexDigit
    flag   (true or false)      = ("true" | "false") ~rest
    first                       = "a".."z" | "A".."Z" | "_"
    rest                        = first | "0".."9"

    space := " " | "\t" | "\r" | comment
    comment = "//" any*
  }
`;

// What a model's text is made of: how text becomes tokens and tokens text, and how a conversation is
// written down for it.

/** A turn of a conversation. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
}

/** Text of tokens that come one by one: what is certain so far. */
export interface TextStream {
  push(token: number): string;
  end(): string;
}

/** Text to tokens and back. */
export interface TextCodec {
  encode(text: string): readonly number[];
  decode(tokens: readonly number[]): string;
  stream(): TextStream;
  /** The text of a conversation, up to where the next answer begins. */
  template(messages: readonly ChatMessage[]): string;
  /** Tokens that end a text. */
  readonly eos: readonly number[];
  readonly bos?: number | undefined;
  /** Tokens in all. */
  readonly size?: number;
  /** What a token stands for; nothing of those that only steer. Grammars ask for it. */
  readonly bytesOf?: (token: number) => Uint8Array;
}

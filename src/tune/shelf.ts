// What keeps the text of a store of schedules: a file or a database.

/** A place that keeps one text: a file or a database. */
export interface Shelf {
  /** Names the place in warnings. */
  readonly place: string;
  read(): Promise<string | undefined>;
  /** Replaces the text by what `update` makes of the text that is there now. */
  write(update: (text: string | undefined) => string): Promise<void>;
}

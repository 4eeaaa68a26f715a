// What the commands that start, stop and use a data folder agree on.

/** Where `start` keeps its data unless told otherwise. */
export const DATA_DIR = '.portcullis';
/** A file that says that a folder was made by `start`, so that `reset` removes nothing else. */
export const DATA_MARKER = 'README.txt';

/** The flags of `start`. */
export interface StartFlags {
  readonly dataDir: string;
  readonly policies?: string;
  readonly examples?: true;
  readonly port: number;
  readonly operationsPort: number;
  readonly clusterPort: number;
}

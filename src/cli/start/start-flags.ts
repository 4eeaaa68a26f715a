/** The default data folder of `start`. */
export const DATA_DIR = '.portcullis';
/** A file that marks a folder as created by `start`; `reset` removes only such folders. */
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

/** The flags of `start`. */
export interface StartFlags {
  readonly dataDir: string;
  readonly policies?: string;
  readonly examples?: true;
  readonly port: number;
  readonly operationsPort: number;
  readonly clusterPort: number;
}

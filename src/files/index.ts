export { FileWatch } from './file-watch.ts';
export type { Contents } from './file-watch.ts';
export { fittingEntries } from './fitting-entries.ts';
export { KeptFile } from './kept-file.ts';
export {
  FileError,
  fileProblem,
  MAX_FILE_BYTES,
  openFile,
  readWholeFile,
  readWholeFileSync,
  readWholeStream,
} from './read-file.ts';

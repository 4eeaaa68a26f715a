import { relative } from 'node:path';

/** A path relative to the working directory, if it is inside. */
export function pathFromHere(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith('..') ? path : short;
}

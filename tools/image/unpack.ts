import { Readable } from 'node:stream';
import { Parser, type ReadEntry } from 'tar';
import type { TreeEntry } from './file-tree.ts';

/** The files and symbolic links of a tarball, which may be compressed, by path without a leading `./`. */
export async function unpack(tarball: Uint8Array): Promise<ReadonlyMap<string, TreeEntry>> {
  const entries = new Map<string, TreeEntry>();
  const reading: Promise<void>[] = [];
  const parser = new Parser({
    strict: true,
    onReadEntry: (entry) => reading.push(readInto(entries, entry)),
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  parser.on('end', resolve).on('error', reject);
  Readable.from([Buffer.from(tarball)]).on('data', (chunk: Buffer) => parser.end(chunk));
  await promise;
  await Promise.all(reading);
  return entries;
}

async function readInto(entries: Map<string, TreeEntry>, entry: ReadEntry): Promise<void> {
  const path = entry.path.replace(/^\.\//, '').replace(/\/$/, '');
  const content = await entry.concat();
  if (entry.type === 'File') {
    entries.set(path, { kind: 'file', content, isExecutable: ((entry.mode ?? 0) & 0o100) !== 0 });
  } else if (entry.type === 'SymbolicLink') {
    entries.set(path, { kind: 'link', target: entry.linkpath ?? '' });
  }
}

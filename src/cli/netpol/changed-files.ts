// The manifests of a checkout that differ from a revision. Git says what it tracks; the files are compared here, because Git
// would run filters and monitors of the checkout's configuration, and no link out of the checkout is followed.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, readlink, realpath } from 'node:fs/promises';
import { dirname, extname, join, posix, relative, sep } from 'node:path';
import { readWholeFile } from '../../files/index.ts';
import { errorText } from '../../values/index.ts';
import { EXTENSIONS } from '../cluster/apply-files.ts';
import { CliError } from '../errors.ts';
import { oneLine } from '../table.ts';
import { gitOutput } from './git-command.ts';

/** A path that Git tracks. */
interface TrackedFile {
  /** `100644`, `120000` for a link, `160000` for a submodule. */
  readonly mode: string;
  /** Of the blob. */
  readonly digest: string;
}

type Tree = ReadonlyMap<string, TrackedFile>;

interface Checkout {
  /** Absolute, without links. */
  readonly root: string;
  /** The current folder below the root; empty, or with a slash at its end. */
  readonly prefix: string;
  readonly hash: string;
}

/** Files that differ, and files that cannot be compared with the reason. */
export interface ChangedFiles {
  /** Paths from the current folder. */
  readonly files: readonly string[];
  readonly notes: string[];
}

const LINK = '120000';
const FILE = /^100/;
/** `100644 DIGEST 0⇥PATH` of the index, `100644 blob DIGEST⇥PATH` of a tree. */
const ENTRY = /^(\d{6}) (?:\w+ )?([0-9a-f]{40,64})(?: \d)?\t([^]*)$/;

/**
 * The tracked manifests below the current folder that differ from a revision, also by changes that are not committed.
 * @param paths files or folders; without any, all below the current folder
 * @throws CliError when Git cannot say, or a manifest is a link out of the checkout
 */
export async function changedFiles(base: string, paths: readonly string[]): Promise<ChangedFiles> {
  const checkout = await asked(base, checkoutHere());
  const before = treeOf(await asked(base, gitOutput(['ls-tree', '-r', '-z', '--full-tree', await treeDigest(base)])));
  const tracked = treeOf(await asked(base, gitOutput(['ls-files', '-s', '-z', '--full-name'])));
  const wanted = treeOf(await asked(base, gitOutput(['ls-files', '-s', '-z', '--full-name', '--', ...paths])));
  const files: string[] = [];
  const notes: string[] = [];
  for (const [path, file] of wanted) {
    if (EXTENSIONS.has(extname(path)) && (FILE.test(file.mode) || file.mode === LINK)) {
      const change = await changeOf(path, file, before.get(path), checkout);
      const shown = posix.relative(checkout.prefix, path);
      if (change === 'missing') {
        notes.push(`${shown} is not in the work tree`);
      } else if (change === 'changed') {
        await requireInside(path, shown, tracked, checkout);
        files.push(shown);
      }
    }
  }
  return { files, notes };
}

async function asked<Result>(base: string, answer: Promise<Result>): Promise<Result> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof CliError) {
      throw error;
    }
    throw notComparable(base, oneLine(errorText(error)), error);
  }
}

function notComparable(base: string, why: string, cause?: unknown): CliError {
  const hint = 'Name a revision of the repository of this folder, such as --diff origin/main.';
  return new CliError(`git cannot compare with ${oneLine(base, 80)}: ${why}`, { hint, cause });
}

/** @throws CliError when the configuration names another folder as the work tree, whose files are somebody else's */
async function checkoutHere(): Promise<Checkout> {
  const here = await realpath(process.cwd());
  const root = await realpath((await gitOutput(['rev-parse', '--show-toplevel'])).replace(/\n$/, ''));
  if (root !== rootAbove(here)) {
    throw new CliError(`the configuration of this repository has its work tree elsewhere (core.worktree): ${root}`, {
      hint: 'Run the command in the folder that has .git.',
    });
  }
  const prefix = relative(root, here).split(sep).join('/');
  return { root, prefix: prefix === '' ? '' : `${prefix}/`, hash: await objectFormat() };
}

/** The nearest folder with `.git`, as Git looks for it. */
function rootAbove(folder: string): string | undefined {
  if (existsSync(join(folder, '.git'))) {
    return folder;
  }
  return dirname(folder) === folder ? undefined : rootAbove(dirname(folder));
}

async function objectFormat(): Promise<string> {
  return (await gitOutput(['rev-parse', '--show-object-format'])).trim();
}

/** The digest of a revision's tree. The revision is given as input, where it is no option. */
async function treeDigest(base: string): Promise<string> {
  const answer = /\s/.test(base) ? '' : await gitOutput(['cat-file', '--batch-check'], `${base}^{tree}\n`);
  const digest = /^([0-9a-f]{40,64}) tree \d+\n$/.exec(answer)?.[1];
  if (digest === undefined) {
    throw notComparable(base, 'this repository has no such revision');
  }
  return digest;
}

function treeOf(listing: string): Tree {
  return new Map(
    listing.split('\0').flatMap((line) => {
      const [, mode = '', digest = '', path = ''] = ENTRY.exec(line) ?? [];
      return path === '' ? [] : [[path, { mode, digest }] as const];
    }),
  );
}

type Change = 'changed' | 'same' | 'missing';

/** What the work tree has in place of a file of the revision. */
async function changeOf(
  path: string,
  file: TrackedFile,
  before: TrackedFile | undefined,
  { root, hash }: Checkout,
): Promise<Change> {
  const place = join(root, path);
  const status = await lstat(place).catch(() => undefined);
  if (status === undefined) {
    // A deleted file, or one that a sparse checkout leaves out.
    return file.digest === before?.digest ? 'same' : 'missing';
  }
  if (before === undefined || status.isSymbolicLink() !== (before.mode === LINK)) {
    return 'changed';
  }
  const content = await (status.isSymbolicLink() ? readlink(place, 'buffer') : readWholeFile(place)).catch(
    () => undefined,
  );
  return content !== undefined && isBlob(content, before.digest, hash) ? 'same' : 'changed';
}

/** Whether a content is that of a blob, but for the ends of lines, which Git may change in the work tree. */
function isBlob(content: Buffer, digest: string, hash: string): boolean {
  const plain = (): Buffer => Buffer.from(content.toString('latin1').replaceAll('\r\n', '\n'), 'latin1');
  return blobDigest(content, hash) === digest || blobDigest(plain(), hash) === digest;
}

function blobDigest(content: Buffer, hash: string): string {
  return createHash(hash).update(`blob ${content.length}\0`).update(content).digest('hex');
}

/** A link may lead to another file that Git tracks: all else, also in `.git`, is not of the change that is checked. */
async function requireInside(path: string, shown: string, tracked: Tree, { root }: Checkout): Promise<void> {
  const real = await realpath(join(root, path)).catch(() => undefined);
  const target = real === undefined ? undefined : relative(root, real).split(sep).join('/');
  if (target === undefined || !FILE.test(tracked.get(target)?.mode ?? '')) {
    throw new CliError(`${oneLine(shown)} is a symbolic link to what is no file of this repository: it is not read`, {
      hint: 'Replace the link by the manifest itself.',
    });
  }
}

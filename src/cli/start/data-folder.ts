// The data folder of `portcullis start`: its marker, and the process that uses it.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { errorText } from '../../values/index.ts';
import { fileProblem } from '../../files/index.ts';
import { DATA_DIR } from '../data-dir.ts';
import { CliError } from '../errors.ts';
import { pathFromHere } from './path-from-here.ts';

/** A file that marks a folder as created by `start`; `reset` removes only such folders. */
const DATA_MARKER = 'README.txt';
const MARKER_TEXT = 'Data of `portcullis start`. `portcullis reset` removes this folder.\n';
/** Holds the address of the policy server, which has another port in each folder: for commands in docs. */
const ADDRESS_FILE = 'address';
/** Holds the tokens of the users of the cluster. */
export const TOKENS_FILE = join('credentials', 'tokens.json');
/** The sources of modules, for processes that read them. */
const SOURCES_FILE = 'sources.yml';
/** Holds the id of the process that uses the folder. */
const PROCESS_FILE = 'portcullis.pid';

/**
 * Creates the folder if it is missing, and claims it for this process until it is disposed.
 * @throws CliError when the folder cannot be created, or another process uses it
 */
export function openDataFolder(dataDir: string): Disposable {
  const processFile = join(dataDir, PROCESS_FILE);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    assertUnused(dataDir, 'used');
    // Never in a folder with other files: `reset` would remove them.
    if (readdirSync(dataDir).length === 0) {
      writeFileSync(join(dataDir, DATA_MARKER), MARKER_TEXT);
    }
    writeFileSync(processFile, `${process.pid}\n`);
  } catch (error) {
    if (error instanceof CliError) {
      throw error;
    }
    throw new CliError(`the data folder ${dataDir} cannot be created: ${fileProblem(error)}`, {
      hint: 'Name another one with --data-dir.',
      cause: error,
    });
  }
  return { [Symbol.dispose]: () => rmSync(processFile, { force: true }) };
}

/** Writes down where the policy server listens, such as `https://localhost:8443`. */
export function writeAddress(dataDir: string, address: string): void {
  writeFileSync(join(dataDir, ADDRESS_FILE), `${address}\n`);
}

/** The kubeconfigs of the user of `start`, and of its processes. */
export function credentialFiles(dataDir: string): {
  readonly user: string;
  readonly controller: string;
  readonly policyServer: string;
  readonly auditor: string;
} {
  const file = (name: string): string => join(dataDir, 'credentials', `${name}.kubeconfig`);
  return {
    user: join(dataDir, 'kubeconfig'),
    controller: file('controller'),
    policyServer: file('policy-server'),
    auditor: file('auditor'),
  };
}

/** Ends the access of all clients of an earlier run. */
export function forgetTokens(dataDir: string): void {
  rmSync(join(dataDir, TOKENS_FILE), { force: true });
}

/** Writes the sources of modules, which may hold passwords of proxies; returns the file. */
export function writeSources(dataDir: string, text: string): string {
  const file = join(dataDir, SOURCES_FILE);
  rmSync(file, { force: true });
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** The folder of the certificates of `start`. */
export function certificatesFolder(dataDir: string): string {
  return join(dataDir, 'pki');
}

/**
 * Removes a data folder; false if there is none.
 * @throws CliError when it was not created by `start`, or a process uses it
 */
export function removeDataFolder(dataDir: string): boolean {
  if (!existsSync(dataDir)) {
    return false;
  }
  if (!isMarked(dataDir) && readdirSync(dataDir).length > 0) {
    throw new CliError(`${dataDir} was not created by \`portcullis start\` and is not removed`, {
      hint: 'Remove it by hand if it is what you mean.',
    });
  }
  assertUnused(dataDir, 'removed');
  rmSync(dataDir, { recursive: true });
  return true;
}

/** The command that removes a data folder, as the user would type it here. */
export function resetCommandFor(dataDir: string): string {
  const command = process.env['npm_lifecycle_event'] === 'start' ? 'npm run reset' : 'portcullis reset';
  if (dataDir === resolve(DATA_DIR)) {
    return command;
  }
  return `${command}${command.startsWith('npm') ? ' --' : ''} --data-dir ${pathFromHere(dataDir)}`;
}

function isMarked(dataDir: string): boolean {
  const marker = join(dataDir, DATA_MARKER);
  return existsSync(marker) && readFileSync(marker, 'utf8') === MARKER_TEXT;
}

function assertUnused(dataDir: string, participle: 'used' | 'removed'): void {
  const pid = runningProcess(join(dataDir, PROCESS_FILE));
  if (pid !== undefined) {
    throw new CliError(`${dataDir} cannot be ${participle}: process ${pid} runs \`portcullis start\` on it`, {
      hint: `${participle === 'used' ? 'To start another one beside it, name another folder with --data-dir FOLDER. ' : ''}To stop it: kill ${pid}. If that is another program, remove ${join(dataDir, PROCESS_FILE)}.`,
    });
  }
}

/** The process that a file names, if it runs; it does not after a crash. */
function runningProcess(processFile: string): number | undefined {
  if (!existsSync(processFile)) {
    return undefined;
  }
  const pid = Number(readFileSync(processFile, 'utf8'));
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) {
    return undefined;
  }
  try {
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    // EPERM: it runs, and belongs to another user.
    return errorText(error).includes('EPERM') ? pid : undefined;
  }
}

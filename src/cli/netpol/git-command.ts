// Runs Git in a folder whose files and configuration somebody else may have written, such as the checkout of a pull request.
import { execFile } from 'node:child_process';
import { errorText, isJsonObject } from '../../values/index.ts';

/** The names of all files of a large repository, with their modes and digests. */
const MAX_GIT_OUTPUT = 64 * 1024 * 1024;

/** Nothing is written, replaced or shown in pages, names are not patterns, and what a configuration could start is off. */
const FLAGS: readonly string[] = [
  '--no-pager',
  '--no-optional-locks',
  '--no-replace-objects',
  '--literal-pathspecs',
  ...[
    'core.fsmonitor=false',
    'core.hooksPath=/dev/null',
    'core.sshCommand=false',
    'core.gitProxy=',
    'credential.helper=',
    'protocol.allow=never',
    'safe.bareRepository=explicit',
    'submodule.recurse=false',
  ].flatMap((setting) => ['-c', setting]),
];

/** Objects that a partial clone lacks are not fetched: a remote of the configuration can be a program. */
const ENVIRONMENT = {
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_NO_LAZY_FETCH: '1',
  GIT_TERMINAL_PROMPT: '0',
  LC_ALL: 'C',
} as const;

/** Of the user's own variables for Git, those that say which configuration and folders may be trusted. */
const KEPT = /^GIT_(?:CONFIG|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM)/;

/**
 * What a command of Git prints. Only commands that read objects and the index are safe: those that compare with files of the
 * work tree run the filters of the configuration.
 * @param input for standard input
 */
export async function gitOutput(args: readonly string[], input = ''): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = { maxBuffer: MAX_GIT_OUTPUT, env: environment() };
  const child = execFile('git', [...FLAGS, ...args], options, (error, stdout, stderr) =>
    error === null ? resolve(stdout) : reject(new Error(problemOf(error, stderr), { cause: error })),
  );
  child.stdin?.on('error', () => undefined).end(input);
  return await promise;
}

function environment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_') || KEPT.test(name));
  return { ...Object.fromEntries(own), ...ENVIRONMENT };
}

function problemOf(error: Error, stderr: string): string {
  if (stderr.trim() !== '') {
    return stderr.trim();
  }
  return isJsonObject(error) && error['code'] === 'ENOENT' ? 'there is no program named git' : errorText(error);
}

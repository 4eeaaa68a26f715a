// Runs the real command as a child process.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The root of the checkout, where commands run. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const EXAMPLES = 'examples';
export const GUESTS = 'test/fixtures/guests';
/** A request that required-labels denies. */
export const REQUEST = `${EXAMPLES}/required-labels/requests/rejected.json`;

/** How a command ended. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the command finds. */
export interface CommandOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the root of the checkout. */
  readonly cwd?: string;
}

/** Folders and variables that keep a command away from the user's own; compiled code is shared between tests. */
export const ENVIRONMENT = {
  ...process.env,
  NO_COLOR: '1',
  XDG_CACHE_HOME: join(ROOT, '.cache', 'cli-tests'),
  PORTCULLIS_DEBUG: undefined,
};

export const COMMAND = join(ROOT, 'bin', 'portcullis.mjs');

/** Runs `portcullis ARGS`. */
export function portcullis(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return run(process.execPath, [COMMAND, ...args], options);
}

/** Runs `portcullis ARGS`, and ends it at once, as a crash would, after that many lines of output. Returns whether it was ended. */
export async function interrupted(
  args: readonly string[],
  lines: number,
  options: CommandOptions = {},
): Promise<boolean> {
  const child = spawn(process.execPath, [COMMAND, ...args], {
    cwd: options.cwd ?? ROOT,
    env: { ...ENVIRONMENT, ...options.env },
    // Its processes are a group.
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let seen = 0;
  for await (const _line of createInterface({ input: child.stdout })) {
    seen += 1;
    if (seen === lines && child.pid !== undefined) {
      process.kill(-child.pid, 'SIGKILL');
    }
  }
  return seen >= lines;
}

/** Runs a program. */
export async function run(file: string, args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const child = spawn(file, args, { cwd: options.cwd ?? ROOT, env: { ...ENVIRONMENT, ...options.env } });
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.on('error', reject);
  child.on('close', resolve);
  // A command that does not read its input closes it.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.stdin ?? '');
  return { code: await promise, stdout, stderr };
}

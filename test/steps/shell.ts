// The shell of a user.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Ended } from './step.ts';

/** Where commands run. */
export interface ShellPlace {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Runs commands in `sh`. Standard error becomes part of the output. */
export async function runShell(commands: string, { cwd, env }: ShellPlace): Promise<Ended> {
  const child = spawn('sh', ['-c', `exec 2>&1\n${commands}`], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close') as Promise<[number | null]>]);
  return { code, output };
}

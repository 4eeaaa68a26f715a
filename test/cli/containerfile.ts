// Containerfile as instructions.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './command.ts';

/** An instruction of Containerfile. */
export interface Step {
  readonly instruction: string;
  readonly text: string;
}

export const STEPS: readonly Step[] = (await readFile(join(ROOT, 'Containerfile'), 'utf8'))
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [instruction = ''] = line.split(' ', 1);
    return { instruction, text: line.slice(instruction.length + 1) };
  });

/** The variables that its processes have. */
export const VARIABLES: Readonly<Record<string, string>> = Object.fromEntries(
  STEPS.filter(({ instruction }) => instruction === 'ENV').map(({ text }) => {
    const [name = ''] = text.split('=', 1);
    return [name, text.slice(name.length + 1)];
  }),
);

// The time until `portcullis start` has its cluster, its policy server and the example policies ready: with a new data folder,
// and with a used one. Usage: npm run bench -- start
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { machine, median, printTable } from './processes.ts';

const ROUNDS = 5;
const PROGRAMS = {
  published: fileURLToPath(new URL('../dist/cli/program/main.js', import.meta.url)),
  'from sources': fileURLToPath(new URL('../bin/portcullis.mjs', import.meta.url)),
};
const PORTS = ['--port', '0', '--operations-port', '0', '--cluster-port', '0'];

/** Milliseconds from the start of the process until its greeting. */
async function start(program: string, dataDir: string, args: readonly string[]): Promise<number> {
  const begun = performance.now();
  const child = spawn(process.execPath, [program, 'start', ...PORTS, '--data-dir', dataDir, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  const greeted = Promise.withResolvers<number>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (output.includes('Ctrl-C stops.')) {
      greeted.resolve(performance.now() - begun);
    }
  });
  child.once('exit', () => greeted.reject(new Error(`it ended before it greeted:\n${output}`)));
  const took = await greeted.promise;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
  return took;
}

console.log(`\nstart: until everything serves, median of ${ROUNDS}; ${machine()}`);
const rows: string[][] = [];
for (const [how, program] of Object.entries(PROGRAMS)) {
  for (const [what, args] of [
    ['cluster and policy server', []],
    ['the same with the example policies', ['--examples']],
  ] as const) {
    const times: { readonly first: number; readonly again: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
      try {
        const dataDir = join(folder, 'data');
        times.push({ first: await start(program, dataDir, args), again: await start(program, dataDir, args) });
      } finally {
        rmSync(folder, { recursive: true });
      }
    }
    const figures = [times.map(({ first }) => first), times.map(({ again }) => again)];
    rows.push([what, how, ...figures.map((values) => median(values).toFixed(0))]);
  }
}
printTable(['what', 'package', 'new folder ms', 'used folder ms'], rows);

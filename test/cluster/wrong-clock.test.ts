import assert from 'node:assert/strict';
import { it } from 'node:test';
import { run } from '../cli/command.ts';
import { skipWithoutFaketime } from './binaries.ts';
import { removeClocks, withClock } from './wrong-clock.ts';

/** Prints by how many minutes the clocks of the process and of a thread differ from the time on the command line. */
const PROGRAM = `
const { Worker } = require('node:worker_threads');
const ahead = 'Math.round((Date.now() - ' + process.argv[1] + ') / 60_000)';
const began = performance.now();
const thread = new Worker('require("node:worker_threads").parentPort.postMessage(' + ahead + ')', { eval: true });
thread.on('message', (minutes) => {
  const isMinuteGone = performance.now() - began > 60_000;
  console.log(eval(ahead), minutes, isMinuteGone);
});`;

for (const minutes of [60, -60]) {
  it(
    `a command has a clock that is ${minutes} minutes ahead, and measures time as others do`,
    {
      skip: skipWithoutFaketime(),
    },
    async () => {
      const [program = '', ...args] = withClock([process.execPath, '-e', PROGRAM, String(Date.now())], minutes * 60);
      const { code, stdout, stderr } = await run(program, args);
      assert.equal(code, 0, stderr);
      assert.equal(stdout, `${minutes} ${minutes} false\n`);
      removeClocks();
    },
  );
}

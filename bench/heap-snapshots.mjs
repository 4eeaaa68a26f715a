// Preloaded into processes that are measured: on SIGUSR2 each writes a heap snapshot of each of its threads into the working directory,
// and then the file snapshots-done-COMMAND.
import { createWriteStream, writeFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { getHeapSnapshot } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

const [, , command] = process.argv;

if (isMainThread) {
  const workers = new Set();
  process.on('worker', (worker) => {
    workers.add(worker);
    worker.once('exit', () => workers.delete(worker));
  });
  process.on('SIGUSR2', () => void writeSnapshots(workers));
}

async function writeSnapshots(workers) {
  await pipeline(getHeapSnapshot(), createWriteStream(`${command}-main.heapsnapshot`));
  for (const worker of workers) {
    const name = `${command}-${worker.threadName}-${worker.threadId}.heapsnapshot`.replaceAll(' ', '-');
    try {
      await pipeline(await worker.getHeapSnapshot(), createWriteStream(name));
    } catch {
      // A thread that ends meanwhile has nothing to show.
    }
  }
  writeFileSync(`snapshots-done-${command}`, '');
}

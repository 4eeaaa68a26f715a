// The thread that runs modules for the command line: it may be ended at any moment. The work itself is in
// module-tasks.ts, loaded behind the cache of compiled code that threads do not inherit.
import { enableCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { errorText } from '../../values/index.ts';
import type { FromModuleThread, ModuleJob, ModuleThreadStart } from './module-job.ts';

const start = workerData as ModuleThreadStart;
enableCompileCache(start.compileCache);
const { perform, ThreadPort } = await import('./module-tasks.ts');

const say = (message: FromModuleThread): void => parentPort?.postMessage(message);
const port = new ThreadPort(start, say);

parentPort?.on('message', (job: ModuleJob) => {
  try {
    say({ type: 'done', result: perform(job, port, say) });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unexpected';
    say({ type: 'failed', failure: { code, message: errorText(error) } });
  }
});

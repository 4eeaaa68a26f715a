// `portcullis auditor`: knows at any time which existing objects of a cluster its policies would reject.
import type { Command } from 'commander';
import { createLog } from '../../log/index.ts';
import { MetricsEndpoint } from '../../metrics/index.ts';
import { endThreads, runInBackground } from '../../threads/index.ts';
import { connectionOf } from '../daemon-flags.ts';
import { electionTimes } from '../controller/leader-election.ts';
import { operationsServer } from '../operations-server.ts';
import { stopSignal } from '../signals.ts';
import { report } from '../supervised.ts';
import { assembleAuditor } from './assemble-auditor.ts';
import { auditorCommandWithFlags, type AuditorFlags } from './auditor-flags.ts';

export function auditorCommand(): Command {
  return auditorCommandWithFlags().action(auditor);
}

async function auditor(flags: AuditorFlags): Promise<void> {
  // Before anything that takes time: until then a signal ends the process.
  const stopped = stopSignal(['SIGINT', 'SIGTERM']);
  const stop = new AbortController();
  void stopped.then(() => stop.abort());
  // Threads that start later inherit it.
  runInBackground(process.pid);
  // Refuses them before anything is connected.
  electionTimes(flags);
  const connection = await connectionOf(flags);
  const log = createLog({ level: flags.logLevel, format: flags.logFmt, color: process.stdout.isTTY });
  // Stops what already runs when the rest fails to start.
  await using running = new AsyncDisposableStack();
  running.defer(endThreads);
  const { controlled, runtime } = await assembleAuditor(running, flags, connection, log);
  const operations = operationsServer(flags, new MetricsEndpoint([controlled]), () => runtime.notReady());
  running.defer(() => operations.stop());
  const address = await operations.start();
  const ended = runtime.run(stop.signal);
  log.info({ operations: address }, 'auditor ready');
  report({ ready: { operations: address } });
  log.info({ signal: await Promise.race([stopped, ended]) }, 'stopping');
  await ended;
  log.info('stopped');
}

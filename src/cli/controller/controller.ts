// `portcullis controller`: brings the policies of a cluster to its policy servers.
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { Registry } from 'prom-client';
import { KubernetesCluster } from '../../cluster/index.ts';
import { FIELD_MANAGER, type WebhookTarget } from '../../lifecycle/index.ts';
import { LeaderElector, RuntimeMetrics } from '../../runtime/index.ts';
import { createLog, type Logger } from '../../server/index.ts';
import { connectionOf, controlTlsOf } from '../daemon-flags.ts';
import { CliError, fileProblem } from '../errors.ts';
import { stopSignal } from '../signals.ts';
import { assembleController, type ControllerOptions } from './assemble.ts';
import {
  controllerCommandWithFlags,
  type ControllerFlags,
  electionTimes,
  policyServerUrlOf,
  rolloutSettings,
  type WebhookFlags,
  webhookFlags,
} from './controller-flags.ts';
import { OperationsServer } from './operations-server.ts';
import { usernameIn } from './username.ts';

/** The Lease of the one that leads. */
const LEASE = 'portcullis-controller';
/** A request of the election is given up after this part of the renew deadline, so that there is time for another one. */
const ELECTION_REQUEST_SHARE = 0.5;

export function controllerCommand(): Command {
  return controllerCommandWithFlags().action(controller);
}

async function controller(flags: ControllerFlags): Promise<void> {
  const parts = { settings: rolloutSettings(flags), tls: controlTlsOf(flags), target: webhookTarget(flags) };
  const times = electionTimes(flags);
  const webhook = webhookFlags(flags);
  const connection = await connectionOf(flags);
  const stopped = stopSignal(['SIGINT', 'SIGTERM']);
  const stop = new AbortController();
  void stopped.then(() => stop.abort());
  const log = createLog({ level: flags.logLevel, format: flags.logFmt, color: process.stdout.isTTY });
  const registry = new Registry();
  const metrics = new RuntimeMetrics(registry);
  // What runs already is stopped when the rest cannot start.
  await using running = new AsyncDisposableStack();
  let notReady = (): string | undefined => 'the API server has not answered yet';
  const operations = new OperationsServer({
    host: flags.operationsAddr,
    port: flags.operationsPort,
    notReady: () => notReady(),
    registry,
  });
  running.defer(() => operations.stop());
  const address = await operations.start();
  const cluster = running.use(new KubernetesCluster(connection, { fieldManager: FIELD_MANAGER }));
  const requestTimeoutMs = Math.trunc(times.renewDeadlineMs * ELECTION_REQUEST_SHARE);
  const election = running.use(new KubernetesCluster(connection, { fieldManager: FIELD_MANAGER, requestTimeoutMs }));
  const { namespace } = flags;
  const shared = { ...parts, cluster, namespace, registry, metrics, log };
  const {
    runtime,
    ready,
    webhook: checks,
  } = assembleController({
    ...shared,
    ...(flags.leaderElect
      ? { elector: new LeaderElector({ ...times, cluster: election, namespace, name: LEASE, log, metrics }) }
      : {}),
    ...(webhook === undefined ? {} : { webhook: await webhookOption(webhook, cluster, log, stop.signal) }),
  });
  notReady = () => runtime.notReady();
  const ended = runtime.run(stop.signal);
  ready
    .then(async () => {
      const url = await checks?.url;
      log.info({ operations: address, ...(url === undefined ? {} : { webhook: url }) }, 'controller ready');
    })
    // What failed ends the runtime, which tells of it.
    .catch(() => undefined);
  log.info({ signal: await Promise.race([stopped, ended]) }, 'stopping');
  await ended;
  log.info('stopped');
}

async function webhookOption(
  { host, port, certFile, keyFile, caFile, url }: WebhookFlags,
  cluster: KubernetesCluster,
  log: Logger,
  signal: AbortSignal,
): Promise<NonNullable<ControllerOptions['webhook']>> {
  const ca = readPem(caFile);
  const controllerUser = await usernameIn(cluster, log, signal);
  return { host, port, tls: { certFile, keyFile }, ca, url, controllerUser };
}

/** Files are read each time: certificates are renewed while this runs. */
function webhookTarget(flags: ControllerFlags): (policyServer: string) => WebhookTarget {
  readPem(flags.policyServerCaFile);
  return (policyServer) => ({
    url: policyServerUrlOf(flags, policyServer),
    ca: readPem(flags.policyServerCaFile),
  });
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${fileProblem(error)}`, { cause: error });
  }
}

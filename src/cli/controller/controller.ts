// `portcullis controller`: brings the policies of a cluster to its policy servers.
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { Registry } from 'prom-client';
import { KubernetesCluster } from '../../cluster/index.ts';
import type { WebhookTarget } from '../../lifecycle/index.ts';
import { LeaderElector, RuntimeMetrics } from '../../runtime/index.ts';
import { createLog } from '../../server/index.ts';
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
const FIELD_MANAGER = 'portcullis-controller';

export function controllerCommand(): Command {
  return controllerCommandWithFlags().action(controller);
}

async function controller(flags: ControllerFlags): Promise<void> {
  const settings = rolloutSettings(flags);
  const tls = controlTlsOf(flags);
  const times = electionTimes(flags);
  const webhookPort = webhookFlags(flags);
  const target = webhookTarget(flags);
  const connection = await connectionOf(flags);
  const stopped = stopSignal(['SIGINT', 'SIGTERM']);
  const log = createLog({ level: flags.logLevel, format: flags.logFmt, color: process.stdout.isTTY });
  // What runs already is stopped when the rest cannot start.
  await using running = new AsyncDisposableStack();
  const cluster = running.use(new KubernetesCluster(connection, { fieldManager: FIELD_MANAGER }));
  const registry = new Registry();
  const metrics = new RuntimeMetrics(registry);
  const requestTimeoutMs = Math.trunc(times.renewDeadlineMs * ELECTION_REQUEST_SHARE);
  const election = running.use(new KubernetesCluster(connection, { fieldManager: FIELD_MANAGER, requestTimeoutMs }));
  const { namespace } = flags;
  const { runtime, ready, webhook } = assembleController({
    cluster,
    ...(flags.leaderElect
      ? { elector: new LeaderElector({ ...times, cluster: election, namespace, name: LEASE, log, metrics }) }
      : {}),
    namespace,
    settings,
    tls,
    target,
    ...(await webhookOption(webhookPort, cluster)),
    registry,
    metrics,
    log,
  });
  const operations = new OperationsServer({
    host: flags.operationsAddr,
    port: flags.operationsPort,
    notReady: () => runtime.notReady(),
    registry,
  });
  running.defer(() => operations.stop());
  const address = await operations.start();
  const stop = new AbortController();
  const ended = runtime.run(stop.signal);
  await Promise.race([ready, ended]);
  log.info(
    { operations: address, ...(webhook === undefined ? {} : { webhook: await webhook.url }) },
    'controller ready',
  );
  const signal = await Promise.race([stopped, ended]);
  log.info({ signal }, 'stopping');
  stop.abort();
  await ended;
  log.info('stopped');
}

async function webhookOption(
  webhook: WebhookFlags | undefined,
  cluster: KubernetesCluster,
): Promise<Pick<ControllerOptions, 'webhook'>> {
  if (webhook === undefined) {
    return {};
  }
  const { host, port, certFile, keyFile, caFile, url } = webhook;
  const controllerUser = await usernameIn(cluster);
  return { webhook: { host, port, tls: { certFile, keyFile }, ca: readPem(caFile), url, controllerUser } };
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

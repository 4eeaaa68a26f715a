// `portcullis start`: an embedded cluster, the controllers of its policies, and the policy server that serves them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Registry } from 'prom-client';
import { FilePolicySet, POLICY_KINDS, PolicyControllers } from '../lifecycle/index.ts';
import { EventRecorder, Runtime, RuntimeMetrics, SharedCaches } from '../runtime/index.ts';
import type { LocalCertificates } from '../server/index.ts';
import { readObjects } from './cluster/apply-files.ts';
import { applyObject, type LocalCluster, startLocalCluster } from './local-cluster.ts';
import { stopSignal } from './signals.ts';
import { headed, pathFromHere, policyTable, startLog, startServer, type StartedServer } from './start-server.ts';
import type { StartFlags } from './start-flags.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url));
/** A change that no policy should survive: pods have no such field. */
const BROKEN = '{"spec":{"settings":{"validations":[{"expression":"object.spec.contaners"}]}}}';
/** How long the first table waits for the policies of the cluster. Milliseconds. */
const FIRST_TABLE_MS = 10_000;
/** How often it looks. Milliseconds. */
const POLL_MS = 10;

/** Runs until it is told to stop. */
export async function startWithCluster(
  flags: StartFlags,
  dataDir: string,
  certificates: LocalCertificates,
): Promise<void> {
  const stopped = stopSignal();
  const policiesFile = join(dataDir, 'policies.yml');
  if (!existsSync(policiesFile)) {
    writeFileSync(policiesFile, '{}\n', { mode: 0o600 });
  }
  // What runs already is stopped when the rest cannot start.
  await using running = new AsyncDisposableStack();
  const log = startLog();
  const local = await startLocalCluster({ dataDir, certificates, port: flags.clusterPort, log });
  running.defer(() => local.stop());
  let tellControllers: (policy: string) => void = () => undefined;
  const registry = new Registry();
  const metrics = new RuntimeMetrics(registry);
  const started = await startServer(flags, certificates, {
    policiesFile,
    dataDir,
    registry,
    cluster: { kind: 'kubeconfig', file: local.kubeconfig, env: process.env },
    onStatusChange: (policy) => tellControllers(policy),
    log,
  });
  running.defer(() => started.server.stop());
  const { cluster } = local;
  const caches = new SharedCaches({ cluster: cluster.admin, log, metrics });
  const events = new EventRecorder({ cluster: cluster.admin, component: 'portcullis', log, metrics });
  const controllers = new PolicyControllers({
    cluster: cluster.admin,
    caches,
    set: new FilePolicySet(policiesFile, started.server),
    target: { url: started.admission, ca: readFileSync(certificates.caFile, 'utf8') },
    modulesUrl: pathToFileURL(flags.examples === true ? EXAMPLES : `${process.cwd()}/`),
    events,
    log,
    metrics,
  });
  tellControllers = (policy) => controllers.statusChanged(policy);
  const stop = new AbortController();
  const ended = new Runtime({ log }).add('cache', caches).add('leader', events, controllers).run(stop.signal);
  running.defer(async () => {
    stop.abort();
    await ended;
  });
  if (flags.examples === true && local.isNew) {
    for (const object of await readObjects(
      [join(EXAMPLES, 'manifests', 'namespace.yaml'), join(EXAMPLES, 'manifests')],
      false,
    )) {
      await applyObject(cluster, object);
    }
  }
  await Promise.race([controllers.ready, ended]);
  await settled(local, started);
  process.stdout.write(
    `\n${policyTable(started.server.policies().policies)}\n\n${greeting(local, started, dataDir, certificates)}`,
  );
  await Promise.race([stopped, ended]);
  process.stdout.write('\nStopping…\n');
}

/** Waits until every policy of the cluster has served or failed once. */
async function settled({ cluster }: LocalCluster, { server }: StartedServer): Promise<void> {
  const declared = POLICY_KINDS.reduce((count, kind) => count + [...cluster.state.list(kind)].length, 0);
  const isSettled = (): boolean => {
    const { policies } = server.policies();
    return policies.length >= declared && policies.every(({ phase }) => phase !== 'Pending');
  };
  const deadline = performance.now() + FIRST_TABLE_MS;
  while (!isSettled() && performance.now() < deadline) {
    await sleep(POLL_MS);
  }
}

function greeting(
  local: LocalCluster,
  { admission, operations }: StartedServer,
  dataDir: string,
  certificates: LocalCertificates,
): string {
  const rows = [
    ['Cluster', `${local.url}   for kubectl, see below`],
    ['Reviews', `${admission}/validate/POLICY`],
    ['Status', `${operations}/policies   (also /metrics, /readyz)`],
    ['Data', `${pathFromHere(dataDir)}   (\`npm run reset\` removes it)`],
  ] as const;
  const example = (path: string): string => pathFromHere(join(EXAMPLES, path));
  const review = example('required-labels/requests/rejected.json');
  const caFile = pathFromHere(certificates.caFile);
  const tour = [
    'In another terminal: apply a policy, be rejected by it, break it, and see why it still serves.',
    '',
    `  export KUBECONFIG=${local.kubeconfig}`,
    `  kubectl apply -f ${example('pinned-images/policy.yaml')}`,
    '  kubectl run web --image=nginx',
    `  kubectl patch cap pinned-images --type=merge -p '${BROKEN}'`,
    '  kubectl describe cap pinned-images',
    '',
    'Without kubectl, `npx portcullis` has get, describe, apply, delete and wait. Reviews can be sent by anybody:',
    '',
    `  curl --cacert ${caFile} -H 'Content-Type: application/json' -d @${review} ${admission}/validate/kw.cap.required-labels`,
  ];
  return `${headed(rows)}\n\n${tour.join('\n')}\n\nCtrl-C stops.\n`;
}

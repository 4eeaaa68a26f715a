// Audits of a real API server with many pods and twenty policies: one run, beside what one loop takes that lists the pods and evaluates
// the policies in one thread; a preview of one policy, beside such a loop with both versions; and an auditor: at first, without changes, after a restart, and how soon it has what a change brings.
// Usage: npm run bench -- audit [PODS...]; needs the programs of the test cluster (npm run cluster:build). Default: 10000. Pods are
// created first: 50,000 take minutes. The auditor is measured with the last size.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../bin/find-node.mjs';
import { ALL_KINDS, customResourceDefinition } from '../src/resources/index.ts';
import { clusterAvailable } from '../test/cluster/binaries.ts';
import { startCluster } from '../test/cluster/cluster.ts';
import { VARIABLES } from '../tools/image/image-config.ts';
import { auditPolicies, EXAMPLES, previewVersions } from './audit-policies.ts';
import { AuditorProcess, sumOfSamples } from './auditor-process.ts';
import { cpuMs, LineProcess, machine, median, peakMiB, printTable } from './processes.ts';
import { inTurns } from './scene.ts';

const PROGRAM = fileURLToPath(new URL('../dist/cli/program/main.js', import.meta.url));
const AT_ONCE = 16;
const NAMESPACES = 100;
/** Pods that are alike but for their names and addresses, as those of one workload. */
const REPLICAS = 5;
const POLL_MS = 50;
const IDLE_MS = 20_000;
/** Between two changes. Milliseconds. */
const SETTLE_MS = 3_000;
/** Changes of each kind. */
const TURNS = 3;
const OWN_GROUPS = /group="(?:policies\.kubewarden\.io|portcullis\.dev|openreports\.io|wgpolicyk8s\.io)"/;
const POLICIES = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies';
/** May read all that policies are for, but Services. */
const NARROW = 'narrow';
/** Kinds of one more policy, which rejects each object. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  '': [
    'configmaps',
    'services',
    'serviceaccounts',
    'limitranges',
    'resourcequotas',
    'persistentvolumeclaims',
    'podtemplates',
  ],
  apps: ['deployments', 'daemonsets', 'statefulsets', 'replicasets', 'controllerrevisions'],
  batch: ['jobs', 'cronjobs'],
  'networking.k8s.io': ['ingresses', 'networkpolicies'],
  policy: ['poddisruptionbudgets'],
  'coordination.k8s.io': ['leases'],
  'rbac.authorization.k8s.io': ['roles', 'rolebindings'],
};

/** Policies for namespaces with a label, and with parameters. */
const FOLLOWING: readonly object[] = [
  following('of-held', {
    settings: { validations: [{ expression: 'false', message: 'held' }] },
    namespaceSelector: { matchLabels: { bench: 'held' } },
  }),
  following('by-parameter', {
    settings: {
      variables: [{ name: 'most', expression: '10' }],
      validations: [{ expression: 'object.spec.containers.size() <= variables.most', message: 'too many' }],
    },
    parameters: {
      from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'bench' } },
      notFound: 'Allow',
      overridable: ['variables'],
      settingsExpression: "{'variables': [{'name': 'most', 'expression': params.data.most}]}",
    },
  }),
];

interface Run<Of = Report> {
  readonly ms: number;
  readonly cpuMs: number;
  readonly peakMiB: number;
  readonly code: number | null;
  readonly report: Of;
}

interface PreviewReport {
  readonly isComplete: boolean;
  readonly counts: { readonly objects: Readonly<Record<string, number>> };
}

interface Report {
  readonly summary: { readonly findings: number; readonly objects: number; readonly incomplete: number };
  readonly results: readonly {
    readonly policy: string;
    readonly object: { readonly kind: string; readonly name: string };
  }[];
  readonly coverage: readonly { readonly state: string; readonly kind?: { readonly kind: string } }[];
}

interface Loop {
  readonly ms: number;
  readonly cpuMs: number;
  readonly objects: number;
  readonly denials: number;
}

const available = clusterAvailable();
if (!available.available) {
  console.log('audit: the programs of the test cluster are missing; build them with: npm run cluster:build');
  process.exit(0);
}
const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [10_000];
await using cluster = await startCluster({ users: { [NARROW]: {} } });
await prepare();
const rows: string[][] = [];
let created = 0;
for (const size of sizes.toSorted((one, other) => one - other)) {
  await createPods(created, size);
  created = size;
  await measure(size);
  await measurePreview(size);
}
await follow(created);
console.log(machine());
printTable(['pods', 'what', 'time', 'processor', 'peak memory', 'against the loop'], rows);
await forbidden();

/** Once before and once after the audit: other load of the machine affects both alike. */
async function measure(size: number): Promise<void> {
  const before = await loop();
  const run = await audit('admin');
  const after = await loop();
  if (run.report.summary.incomplete > 0 || run.report.summary.findings !== before.denials) {
    throw new Error(
      `the audit has ${run.report.summary.findings} findings, the loop ${before.denials}: ${JSON.stringify(run.report.summary)}`,
    );
  }
  const [ms, cpu] = [(before.ms + after.ms) / 2, (before.cpuMs + after.cpuMs) / 2];
  rows.push(
    [String(size), 'one loop, one thread', seconds(ms), seconds(cpu), '', ''],
    [
      String(size),
      'portcullis audit',
      seconds(run.ms),
      seconds(run.cpuMs),
      `${run.peakMiB.toFixed(0)} MiB`,
      `${(run.ms / ms).toFixed(2)} × time, ${(run.cpuMs / cpu).toFixed(2)} × processor`,
    ],
  );
}

/** As {@link measure}. The loop rejects what the version before does, and what the version after does. */
async function measurePreview(size: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
  const files = Object.entries(previewVersions()).map(([name, policy]) => {
    const path = join(folder, `${name}.json`);
    writeFileSync(path, JSON.stringify(policy));
    return path;
  });
  const [before = '', after = ''] = files;
  const first = await loop('preview');
  const args = ['rollout', 'preview', '-f', after, '--from', before, '--fail-on', 'never', '-o', 'json'];
  const run = await measured<PreviewReport>('admin', args);
  const last = await loop('preview');
  rmSync(folder, { recursive: true });
  const { newlyRejected = 0, stillRejected = 0, unchanged = 0 } = run.report.counts.objects;
  const denials = newlyRejected + 2 * stillRejected;
  if (!run.report.isComplete || newlyRejected + stillRejected + unchanged !== size || denials !== first.denials) {
    throw new Error(`the loop has ${first.denials} denials, the preview ${JSON.stringify(run.report.counts)}`);
  }
  const ms = (first.ms + last.ms) / 2;
  rows.push(
    [String(size), 'one loop, one thread, both versions', seconds(ms), seconds((first.cpuMs + last.cpuMs) / 2), '', ''],
    [
      String(size),
      'portcullis rollout preview',
      seconds(run.ms),
      seconds(run.cpuMs),
      `${run.peakMiB.toFixed(0)} MiB`,
      `${(run.ms / ms).toFixed(2)} × time, ${newlyRejected} newly rejected`,
    ],
  );
}

/** What the auditor takes first, without changes, after a restart, and until it has what a change brings. */
async function follow(size: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
  const started = (): Promise<AuditorProcess> => AuditorProcess.start(cluster.kubeconfigOf('admin'), EXAMPLES, folder);
  const row = (what: string, ms: number, auditor: AuditorProcess, more: string): void => {
    rows.push([String(size), what, seconds(ms), seconds(auditor.cpuMs), `${auditor.peakMiB.toFixed(0)} MiB`, more]);
  };
  try {
    {
      await using auditor = await started();
      const ms = await auditor.judged();
      const { evaluations, findings } = await auditor.figures();
      row('portcullis auditor, all judged', ms, auditor, `${evaluations} evaluations, ${findings} findings`);
      const writes = await apiWrites();
      await sleep(IDLE_MS);
      const idle = (await auditor.figures()).evaluations - evaluations;
      const written = (await apiWrites()) - writes;
      row('without changes', IDLE_MS, auditor, `${idle} evaluations, ${written} writes`);
      await delays(size, auditor);
    }
    const writes = await apiWrites();
    await using auditor = await started();
    const ms = await auditor.judged();
    const { evaluations } = await auditor.figures();
    row(
      'after a restart, all judged',
      ms,
      auditor,
      `${evaluations} evaluations, ${(await apiWrites()) - writes} writes`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** From the answer to a change until the auditor has all findings that it brings, and no others. */
async function delays(size: number, auditor: AuditorProcess): Promise<void> {
  for (const policy of FOLLOWING) {
    await cluster.expect('POST', POLICIES, policy);
  }
  await sleep(SETTLE_MS);
  await auditor.judged();
  const measure = async (what: string, brings: number, change: (turn: number) => Promise<unknown>): Promise<void> => {
    const times: number[] = [];
    for (let turn = 0; turn < TURNS; turn += 1) {
      const { findings } = await auditor.figures();
      await change(turn);
      const began = performance.now();
      await auditor.until((now) => now.findings === findings + brings);
      times.push(performance.now() - began);
      await sleep(SETTLE_MS);
    }
    const longest = seconds(Math.max(...times));
    rows.push([
      String(size),
      `${what} changed, ${brings} findings`,
      seconds(median(times)),
      '',
      '',
      `at most ${longest}`,
    ]);
  };
  const ofNamespace = size / NAMESPACES;
  await measure('a pod', 1, (turn) =>
    cluster.expect('PATCH', podPath(REPLICAS + turn), { metadata: { labels: { team: null } } }),
  );
  await measure('a label of a namespace', ofNamespace, (turn) =>
    cluster.expect('PATCH', `/api/v1/namespaces/${namespaceOf(turn)}`, { metadata: { labels: { bench: 'held' } } }),
  );
  await measure('a parameter', ofNamespace, (turn) =>
    cluster.expect('POST', `/api/v1/namespaces/${namespaceOf(turn)}/configmaps`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'bench' },
      data: { most: '1' },
    }),
  );
  await measure('a policy', 1, (turn) => {
    const names = Array.from({ length: turn + 1 }, (_, number) => `!request.name.endsWith('-${size / 2 + number}')`);
    const validations = [{ expression: names.join(' && '), message: 'rule 13' }];
    return cluster.expect('PATCH', `${POLICIES}/cel-13`, { spec: { settings: { validations } } });
  });
}

/** Requests that write what an auditor may: policies, our own kinds, reports. API servers write for themselves, too. */
async function apiWrites(): Promise<number> {
  const { body } = await cluster.request<string>('GET', '/metrics');
  const lines = body.split('\n').filter((line) => line.startsWith('apiserver_request_total{') && OWN_GROUPS.test(line));
  const writes = lines.filter((line) => /verb="(?:POST|PUT|PATCH|APPLY|DELETE)"/.test(line));
  return sumOfSamples(writes.join('\n'), / (\d+)$/gm);
}

/** The findings of all other kinds where one may not be listed. */
async function forbidden(): Promise<void> {
  const kinds = Object.values(KINDS).flat();
  const apply = async (object: object): Promise<void> => {
    const { code, stderr } = await cluster.kubectl(['create', '-f', '-'], { stdin: JSON.stringify(object) });
    if (code !== 0) {
      throw new Error(stderr);
    }
  };
  await apply({ apiVersion: 'v1', kind: 'List', items: oneOfEach() });
  const rules = Object.entries(KINDS).map(([group, resources]) => ({
    apiGroups: [group],
    apiVersions: ['v1'],
    resources,
    operations: ['CREATE'],
  }));
  const settings = { validations: [{ expression: 'false', message: 'no' }] };
  await apply({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'every-kind' },
    spec: { module: 'builtin:cel', mutating: false, rules, settings },
  });
  const [all, narrow] = [
    await audit('admin', '--policy', 'cap/every-kind'),
    await audit(NARROW, '--policy', 'cap/every-kind'),
  ];
  const texts = ({ report }: Run): readonly string[] =>
    report.results
      .filter(({ object }) => object.kind !== 'Service')
      .map(({ policy, object }) => `${policy} ${object.kind} ${object.name}`)
      .toSorted();
  const differing = texts(all).filter((one, index) => texts(narrow)[index] !== one).length;
  const missing = narrow.report.coverage.filter(({ state }) => state === 'Forbidden').map(({ kind }) => kind?.kind);
  console.log(
    `\n1 forbidden kind of ${kinds.length} (${missing.join()}, exit code ${narrow.code}): of ${texts(all).length} findings of others, ${differing} change`,
  );
}

async function prepare(): Promise<void> {
  for (const own of ALL_KINDS) {
    await cluster.expect(
      'POST',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      customResourceDefinition(own),
    );
  }
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
  for (let index = 0; index < NAMESPACES; index += 1) {
    await cluster.createNamespace(namespaceOf(index));
  }
  for (const policy of auditPolicies()) {
    const plural = policy.kind.toLowerCase().replace(/y$/, 'ies').replace(/p$/, 'ps');
    await cluster.expect('POST', `/apis/${policy.apiVersion}/${plural}`, policy);
  }
  const read = { verbs: ['get', 'list', 'watch'] };
  const others = Object.entries(KINDS).map(([group, resources]) => ({
    apiGroups: [group],
    resources: resources.filter((one) => one !== 'services'),
    ...read,
  }));
  const metadata = { name: NARROW };
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata };
  await cluster.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
    ...rbac,
    kind: 'ClusterRole',
    rules: [
      ...others,
      { apiGroups: [''], resources: ['namespaces', 'pods'], ...read },
      { apiGroups: ['policies.kubewarden.io'], resources: ['*'], ...read },
    ],
  });
  await cluster.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    ...rbac,
    kind: 'ClusterRoleBinding',
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NARROW },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: NARROW }],
  });
}

function following(name: string, spec: object): object {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: { module: 'builtin:cel', mutating: false, rules, ...spec },
  };
}

function podPath(index: number): string {
  const workload = Math.floor(index / REPLICAS);
  return `/api/v1/namespaces/${namespaceOf(workload)}/pods/app-${workload}-${index}`;
}

function namespaceOf(index: number): string {
  return `team-${index % NAMESPACES}`;
}

async function createPods(from: number, to: number): Promise<void> {
  const indexes = Array.from({ length: to - from }, (_, index) => from + index);
  await inTurns(indexes, AT_ONCE, (index) => {
    const workload = Math.floor(index / REPLICAS);
    return cluster.expect('POST', `/api/v1/namespaces/${namespaceOf(workload)}/pods`, pod(workload, index));
  });
}

/** Of some kilobytes, as most are. One of 50 workloads breaks a rule. */
function pod(workload: number, index: number): object {
  const app = `app-${workload}`;
  const container = (name: string): object => ({
    name,
    image: `registry.example/${app}:${workload % 50 === 0 ? 'latest' : '1.4.2'}`,
    imagePullPolicy: 'IfNotPresent',
    env: Array.from({ length: 8 }, (_, number) => ({ name: `SETTING_${number}`, value: `value ${number} of ${app}` })),
    ports: [{ name: 'http', containerPort: 8_080 }],
    resources: { limits: { cpu: '500m', memory: '256Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    livenessProbe: { httpGet: { path: '/healthz', port: 'http' }, periodSeconds: 10 },
    securityContext: { allowPrivilegeEscalation: false, runAsNonRoot: true },
    volumeMounts: [{ name: 'config', mountPath: '/etc/app', readOnly: true }],
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${app}-${index}`,
      labels: { app, team: `team-${workload % 20}`, 'app.kubernetes.io/name': app, 'pod-template-hash': '6d4cf56db6' },
      annotations: { 'prometheus.io/scrape': 'true', 'checksum/config': '0'.repeat(64) },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: app,
          uid: '00000000-0000-4000-8000-000000000000',
          controller: true,
        },
      ],
    },
    spec: {
      nodeName: `node-${index % 50}`,
      serviceAccountName: app,
      containers: [container('main'), container('side')].map((one, number) =>
        number === 0 ? one : { ...one, ports: [], livenessProbe: undefined },
      ),
      volumes: [{ name: 'config', configMap: { name: app } }],
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      ],
    },
  };
}

function oneOfEach(): readonly object[] {
  const one = (apiVersion: string, kind: string, content: object): object => ({
    apiVersion,
    kind,
    metadata: { name: 'one', namespace: namespaceOf(0) },
    ...content,
  });
  const labels = { app: 'one' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'registry.example/one:1' }] } };
  const once = { template: { spec: { ...template.spec, restartPolicy: 'Never' } } };
  const rbac = 'rbac.authorization.k8s.io';
  const workload = { selector: { matchLabels: labels }, template };
  return [
    one('v1', 'ConfigMap', { data: { a: 'b' } }),
    one('v1', 'Service', { spec: { ports: [{ port: 80 }] } }),
    one('v1', 'ServiceAccount', {}),
    one('v1', 'LimitRange', { spec: { limits: [{ type: 'Pod', max: { cpu: '8' } }] } }),
    one('v1', 'ResourceQuota', { spec: { hard: { services: '100' } } }),
    one('v1', 'PersistentVolumeClaim', {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }),
    one('v1', 'PodTemplate', { template }),
    one('apps/v1', 'Deployment', { spec: workload }),
    one('apps/v1', 'DaemonSet', { spec: workload }),
    one('apps/v1', 'StatefulSet', { spec: { ...workload, serviceName: 'one' } }),
    one('apps/v1', 'ReplicaSet', { spec: workload }),
    one('apps/v1', 'ControllerRevision', { revision: 1, data: { a: 'b' } }),
    one('batch/v1', 'Job', { spec: once }),
    one('batch/v1', 'CronJob', { spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: once } } }),
    one('networking.k8s.io/v1', 'Ingress', {
      spec: { defaultBackend: { service: { name: 'one', port: { number: 80 } } } },
    }),
    one('networking.k8s.io/v1', 'NetworkPolicy', { spec: { podSelector: {} } }),
    one('policy/v1', 'PodDisruptionBudget', { spec: { minAvailable: 1, selector: { matchLabels: labels } } }),
    one('coordination.k8s.io/v1', 'Lease', { spec: { holderIdentity: 'one' } }),
    one(`${rbac}/v1`, 'Role', { rules: [] }),
    one(`${rbac}/v1`, 'RoleBinding', { roleRef: { apiGroup: rbac, kind: 'Role', name: 'one' }, subjects: [] }),
  ];
}

async function loop(what = 'audit'): Promise<Loop> {
  const child = new LineProcess('./audit-loop.ts', [cluster.url, cluster.adminToken, cluster.caFile, what]);
  const result = JSON.parse(await child.line()) as Loop;
  await child.end();
  return result;
}

function audit(user: string, ...args: readonly string[]): Promise<Run> {
  return measured<Report>(user, ['audit', '-o', 'json', '--modules-dir', EXAMPLES, ...args]);
}

/** A command as a package has it, from its start to its end. */
async function measured<Of>(user: string, args: readonly string[]): Promise<Run<Of>> {
  const began = performance.now();
  const child = spawn(process.execPath, [...NODE_FLAGS, PROGRAM, ...args], {
    env: { ...process.env, ...VARIABLES, KUBECONFIG: cluster.kubeconfigOf(user) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const [text, figures] = await Promise.all([outputOf(child), watched(child, ended)]);
  const [code] = await ended;
  return { ms: performance.now() - began, code, report: JSON.parse(text) as Of, ...figures };
}

async function outputOf({ stdout }: ChildProcess): Promise<string> {
  const chunks: string[] = [];
  for await (const chunk of stdout?.setEncoding('utf8') ?? []) {
    chunks.push(String(chunk));
  }
  return chunks.join('');
}

/** The last figures of a process before its end. */
async function watched({ pid = 0 }: ChildProcess, ended: Promise<unknown>): Promise<Pick<Run, 'cpuMs' | 'peakMiB'>> {
  let isOver = false;
  void ended.then(() => (isOver = true));
  const figures = { cpuMs: 0, peakMiB: 0 };
  while (!isOver) {
    figures.cpuMs = Math.max(figures.cpuMs, cpuMs(pid) || 0);
    figures.peakMiB = Math.max(figures.peakMiB, peakMiB(pid));
    await sleep(POLL_MS);
  }
  return figures;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

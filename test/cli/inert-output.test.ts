// What others write reaches a terminal without its controls: each command is given such texts, as arguments and in what it reads.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ServerResponse } from 'node:http';
import { COMMAND_GROUPS, loadCommand } from '../../src/cli/program/commands.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { ROOT } from './command.ts';
import { StartedPortcullis } from './started.ts';
import { TestRegistry } from '../../src/modules/testing/test-registry.ts';

/** Erases the screen, colours by C0 and C1 controls, turns text around, rings, and is a link. */
const HOSTILE = 'evil\u001B[31m\u001B[2J\u009B2J\u202Etxt\u2066\u0007\u001B]8;;evil:a\u001B\\.yaml';
/** Colours that commands print themselves. */
const OWN_COLOURS = new RegExp(String.raw`\u001B\[(?:1|22|[39]\d)m`, 'g');
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

const NOTHING = 'prints nothing that others write';
const REASON = 'prints the reason of who disarmed a policy, which API servers refuse where it is not printable';

const CEL = (message: string, name = 'evil', operation = 'DELETE'): object => ({
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name, annotations: { 'kubernetes.io/change-cause': HOSTILE } },
  spec: {
    module: 'builtin:cel',
    mutating: false,
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: [operation] }],
    settings: { validations: [{ expression: 'false', message }] },
  },
});
const NETWORK_POLICY = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: HOSTILE, namespace: HOSTILE },
  spec: { podSelector: {}, policyTypes: ['Egress'], egress: [{ ports: [{ port: 30_000, endPort: 32_000 }] }] },
};
const GOVERNANCE = {
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'Policy',
  metadata: { name: 'evil', namespace: 'policies' },
  spec: {
    disabled: false,
    remediationAction: 'inform',
    dependencies: [
      { apiVersion: 'policy.open-cluster-management.io/v1', kind: 'Policy', name: HOSTILE, compliance: 'Compliant' },
    ],
    'policy-templates': [
      {
        objectDefinition: {
          apiVersion: 'policy.open-cluster-management.io/v1',
          kind: 'ConfigurationPolicy',
          metadata: { name: 'evil' },
          spec: {
            remediationAction: 'inform',
            customMessage: { noncompliant: HOSTILE },
            'object-templates': [
              {
                complianceType: 'musthave',
                objectDefinition: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: HOSTILE } },
              },
            ],
          },
        },
      },
    ],
  },
};

const folder = mkdtempSync(join(tmpdir(), 'portcullis-inert-'));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string | object): string {
  const path = join(folder, name);
  writeFileSync(path, typeof text === 'string' ? text : JSON.stringify(text));
  return path;
}

mkdirSync(join(folder, 'evil\u001B[2J\u202E'));
const FILES = {
  policy: file('policy.json', CEL(HOSTILE)),
  other: file('other.json', CEL(`other ${HOSTILE}`)),
  creation: file('creation.json', CEL(HOSTILE, 'evil', 'CREATE')),
  reworded: file('reworded.json', CEL(`${HOSTILE} before`, 'evil', 'CREATE')),
  existing: file('existing.json', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: HOSTILE, namespace: HOSTILE },
  }),
  wrong: file(HOSTILE, `# ${HOSTILE}\na: [evil "${HOSTILE}"`),
  network: file('network.json', NETWORK_POLICY),
  governance: file('governance.json', GOVERNANCE),
  request: file('request.json', {
    request: {
      uid: 'a',
      kind: { group: '', version: 'v1', kind: 'ConfigMap' },
      resource: { group: '', version: 'v1', resource: 'configmaps' },
      operation: 'DELETE',
      name: HOSTILE,
      namespace: 'default',
      userInfo: { username: HOSTILE },
      oldObject: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: HOSTILE, namespace: 'default' } },
    },
  }),
  suite: file('evil\u001B[2J\u202E/portcullis-test.yml', {
    policy: { manifests: ['../policy.json'] },
    cases: [
      {
        name: HOSTILE,
        operation: 'DELETE',
        oldObject: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } },
        expect: { allowed: true, message: HOSTILE },
      },
    ],
  }),
};
/** A module whose name and metadata are hostile, as others can have it in a repository. */
const MODULE = join(folder, `${HOSTILE.replaceAll('/', '')}.wasm`);
copyFileSync(join(ROOT, 'examples/required-labels/policy.wasm'), MODULE);
const METADATA = file('metadata.json', {
  rules: [],
  mutating: false,
  annotations: Object.fromEntries(
    ['title', 'version', 'description', 'author', 'severity', 'category', 'custom'].map((name) => [
      `io.kubewarden.policy.${name}`,
      HOSTILE,
    ]),
  ),
});
const registry = await TestRegistry.start();
after(() => registry[Symbol.asyncDispose]());
const SOURCES = ['--sources-path', file('sources.json', { insecure_sources: [registry.host] })];
const PUSHED = `registry://${registry.host}/evil:v1`;
/** Repositories whose answers are hostile. */
const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  refuses: (response) =>
    response
      .writeHead(403, { 'content-type': 'application/json' })
      .end(JSON.stringify({ errors: [{ code: HOSTILE, message: HOSTILE, detail: HOSTILE }] })),
  challenges: (response) =>
    response.writeHead(401, { 'www-authenticate': 'Bearer realm="evil\u009B2J",scope="evil\u009B2J"' }).end(HOSTILE),
  redirects: (response) => response.writeHead(307, { location: 'http://evil\u009B2J/' }).end(HOSTILE),
  manifests: (response) => {
    const layers = [{ mediaType: HOSTILE, digest: HOSTILE, size: 1, annotations: { [HOSTILE]: HOSTILE } }];
    response
      .writeHead(200, { 'content-type': 'application/vnd.oci.image.manifest.v1+json' })
      .end(JSON.stringify({ schemaVersion: 2, mediaType: HOSTILE, config: layers[0], layers }));
  },
  noise: (response) =>
    response.writeHead(200, { 'content-type': 'evil\u009B2J', 'docker-content-digest': 'evil\u009B2J' }).end(HOSTILE),
};
registry.intercept = (request, response) => {
  const answer = Object.entries(ANSWERS).find(([name]) => request.url?.includes(`/evil-${name}/`))?.[1];
  answer?.(response);
  return answer !== undefined;
};
const hostileAnswers = (args: (reference: string) => readonly string[]): readonly (readonly string[])[] =>
  Object.keys(ANSWERS).map((name) => [...args(`registry://${registry.host}/evil-${name}/a:v1`), ...SOURCES]);
/** The formats of commands that CI systems read. */
const REPORTS = ['table', 'json', 'yaml', 'markdown', 'junit', 'sarif', 'github'];
const formats = (args: readonly string[], ...outputs: readonly string[]): readonly (readonly string[])[] =>
  outputs.map((output) => [...args, '-o', output]);

/** What each command prints of others, besides its arguments. */
const CASES: Readonly<Record<string, readonly (readonly string[])[] | string>> = {
  start: NOTHING,
  reset: NOTHING,
  completion: NOTHING,
  version: NOTHING,
  'scaffold policy': NOTHING,
  'scaffold manifest': [['scaffold', 'manifest', FILES.wrong]],
  'scaffold request': [['scaffold', 'request', FILES.wrong]],
  'scaffold vap': [['scaffold', 'vap', FILES.wrong]],
  'scaffold artifacthub': NOTHING,
  'scaffold verification-config': NOTHING,
  run: [['run', FILES.policy, '-r', FILES.request]],
  test: [...formats(['test', folder], 'table', 'json', 'yaml', 'junit', 'tap'), ['test', FILES.wrong]],
  annotate: [['annotate', MODULE, '-m', METADATA, '-o', MODULE]],
  inspect: [
    ['inspect', FILES.wrong],
    ...formats(['inspect', MODULE], 'table', 'json', 'yaml'),
    ...hostileAnswers((reference) => ['inspect', reference]),
  ],
  findings: [
    ...formats(['findings', '--all-sources'], 'table', 'wide', 'json', 'yaml', 'markdown'),
    ['findings', '--policy', HOSTILE],
  ],
  audit: formats(['audit', '-p', FILES.creation, '-f', FILES.existing], ...REPORTS),
  bench: [['bench', FILES.policy, '-r', FILES.wrong]],
  export: [
    ['export', FILES.policy],
    ['export', FILES.wrong],
  ],
  get: [
    ['get', 'cap', 'evil', '-o', 'wide'],
    ...formats(['get', 'events', '-A'], 'wide', 'yaml', 'json'),
    ...formats(['get', 'cap', 'evil'], 'yaml', 'json'),
  ],
  describe: [
    ['describe', 'cap', 'evil'],
    ['describe', 'configmap', 'evil'],
  ],
  events: [['events', '-A']],
  apply: [
    ['apply', '-f', FILES.wrong],
    ['apply', '-f', FILES.network],
  ],
  patch: [['patch', 'configmap', 'evil', '-p', JSON.stringify({ metadata: { name: HOSTILE } })]],
  delete: [['delete', 'configmap', 'evil']],
  wait: [['wait', 'configmap', 'evil', '--for', `jsonpath=.data.a=${HOSTILE}x`, '--timeout', '1s']],
  'rollout history': [['rollout', 'history', 'cap/evil', '--revision', '1']],
  'rollout status': [['rollout', 'status', 'cap/evil', '--timeout', '20s']],
  'rollout diff': [['rollout', 'diff', 'cap/evil', '--from', '1', '--to', '2']],
  'rollout preview': formats(
    ['rollout', 'preview', '-f', FILES.creation, '--from', FILES.reworded, '--objects', FILES.existing],
    'table',
    'json',
    'yaml',
    'markdown',
  ),
  requests: [['requests', '--requests-socket', `/${HOSTILE}`]],
  'rollout undo': [['rollout', 'undo', 'cap/evil', '--dry-run']],
  'rollout refresh': NOTHING,
  'rollout pin': NOTHING,
  'rollout unpin': NOTHING,
  dryrun: [
    ['dryrun', '-p', FILES.governance],
    ['dryrun', '-p', FILES.wrong],
  ],
  'dryrun generate': NOTHING,
  explain: [
    ['explain', 'policy/evil', '-n', 'policies'],
    ['explain', 'pex/evil', '-n', 'default'],
  ],
  'governance graph': formats(['governance', 'graph', '-f', FILES.governance], 'text', 'dot', 'mermaid'),
  'governance rights': [['governance', 'rights', '-f', FILES.wrong]],
  'netpol check': formats(['netpol', 'check', '-f', FILES.network, '--provider', 'cilium@1.15.4'], ...REPORTS),
  'netpol conformance': [['netpol', 'conformance', HOSTILE, '--timeout', '1s']],
  'netpol explain': [['netpol', 'explain', '-f', FILES.network, '--provider', 'cilium@1.15.4']],
  'netpol matrix': NOTHING,
  'netpol what-if': [
    ['netpol', 'what-if', '-f', FILES.network, '--provider', 'cilium@1.15.4', '--to', 'cilium@1.17.0'],
  ],
  push: [['push', MODULE, PUSHED, ...SOURCES], ...hostileAnswers((reference) => ['push', MODULE, reference])],
  pull: [['pull', PUSHED, '-o', MODULE, ...SOURCES], ...hostileAnswers((reference) => ['pull', reference])],
  verify: hostileAnswers((reference) => ['verify', reference, '--github-owner', 'evil']),
  digest: [['digest', PUSHED, ...SOURCES], ...hostileAnswers((reference) => ['digest', reference])],
  save: [
    ['save', PUSHED, '-o', `${MODULE}.tar.gz`, ...SOURCES],
    ...hostileAnswers((reference) => ['save', reference, '-o', `${MODULE}.tar.gz`]),
  ],
  load: [
    ['load', '--input', FILES.wrong],
    ['load', '--input', `${MODULE}.tar.gz`],
  ],
  policies: NOTHING,
  rm: [['rm', PUSHED]],
  install: NOTHING,
  doctor: 'finds nothing in the cluster of `start`, where nothing is installed',
  'break-glass disarm': REASON,
  'break-glass rearm': REASON,
  'break-glass status': REASON,
  uninstall: NOTHING,
  controller: NOTHING,
  auditor: NOTHING,
  serve: NOTHING,
};

/** The commands that run something, with the words that call them. */
async function commands(): Promise<readonly string[]> {
  const names = Object.values(COMMAND_GROUPS).flatMap((group) => Object.keys(group));
  const loaded = await Promise.all(names.map(loadCommand));
  return loaded.flatMap((command) => {
    const below = command.commands.map((one) => `${command.name()} ${one.name()}`);
    return below.length === 0 || command.name() === 'dryrun' ? [command.name(), ...below] : below;
  });
}

describe('what commands print of others', { skip: skipWithoutCluster(), concurrency: 2 }, () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start();
    for (const [path, wanted] of [
      [FILES.policy, '1'],
      [FILES.other, '2'],
    ] as const) {
      await started.portcullis(['apply', '-f', path]);
      await started.portcullis(['rollout', 'status', 'cap/evil', '--timeout', '20s']);
      assert.match(
        (await started.portcullis(['get', 'cap', 'evil', '-o', 'json'])).stdout,
        new RegExp(`"number": ${wanted}\\b|Revision": ${wanted}\\b`),
      );
    }
    await started.portcullis(
      ['apply', '-f', '-'],
      JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'policies' } }),
    );
    await started.portcullis(['apply', '-f', FILES.governance]);
    await started.portcullis(
      ['apply', '-f', '-'],
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'evil', namespace: 'default', annotations: { a: HOSTILE } },
        data: { a: HOSTILE },
      }),
    );
    await started.request('POST', '/apis/openreports.io/v1alpha1/namespaces/default/reports', {
      apiVersion: 'openreports.io/v1alpha1',
      kind: 'Report',
      metadata: { name: 'evil', namespace: 'default' },
      source: HOSTILE,
      results: [
        {
          policy: HOSTILE,
          rule: HOSTILE,
          category: HOSTILE,
          result: 'fail',
          message: HOSTILE,
          resources: [{ apiVersion: HOSTILE, kind: HOSTILE, namespace: HOSTILE, name: HOSTILE }],
          properties: {
            firstSeen: HOSTILE,
            lastSeen: HOSTILE,
            mode: HOSTILE,
            exception: HOSTILE,
            policyRevision: HOSTILE,
          },
        },
      ],
    });
    const exception = {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyException',
      metadata: { name: 'evil', namespace: 'default' },
      spec: {
        policies: [{ kind: 'ClusterAdmissionPolicy', name: 'evil' }],
        objects: { kinds: [{ apiGroup: HOSTILE, kind: HOSTILE }], names: [`${HOSTILE}*`] },
        reason: HOSTILE,
        ticket: HOSTILE,
        owner: HOSTILE,
        expiresAt: `${new Date(Date.now() + 86_400_000).toISOString().slice(0, -5)}Z`,
      },
    };
    await started.request('POST', '/apis/portcullis.dev/v1/namespaces/default/policyexceptions', exception);
    await started.request('POST', '/api/v1/namespaces/default/events', {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'evil', namespace: 'default' },
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name: 'evil', namespace: 'default' },
      type: 'Warning',
      reason: 'Evil',
      message: HOSTILE,
    });
  });
  after(() => started[Symbol.asyncDispose]());

  /** Fails with what controls a terminal. */
  async function printsInert(args: readonly string[]): Promise<string> {
    // Its own cache of modules, which the commands of modules fill.
    const env = { NO_COLOR: '', FORCE_COLOR: '1', XDG_CACHE_HOME: join(folder, 'cache') };
    const { stdout, stderr } = await started.portcullis(args, '', env);
    const text = stdout + stderr;
    assert.ok(!text.includes('evil\u001B'), `${args.join(' ')} prints colours of others`);
    assert.deepEqual(text.replaceAll(OWN_COLOURS, '').match(CONTROLS), null, JSON.stringify(text));
    return text;
  }

  it('has a case for each command', async () => {
    assert.deepEqual((await commands()).toSorted(), Object.keys(CASES).toSorted());
  });

  for (const [command, cases] of Object.entries(CASES)) {
    it(`is inert in ${command}`, async () => {
      await printsInert([...command.split(' '), HOSTILE]);
      for (const args of typeof cases === 'string' ? [] : cases) {
        assert.match(await printsInert(args), /evil/, args.join(' '));
      }
    });
  }
});

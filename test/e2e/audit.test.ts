// `portcullis audit` on a real API server, with the rights of several users, beside an API that does not answer.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ALL_KINDS, customResourceDefinition } from '../../src/resources/index.ts';
import { type CommandResult, portcullis } from '../cli/command.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { ADMIN, type Cluster, type KubernetesObject, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const API = 'policies.kubewarden.io/v1';
const RBAC = 'rbac.authorization.k8s.io';
/** May read everything, and write nothing. */
const READER = 'reader';
/** May read all but Services. */
const NARROW = 'narrow';
/** A little less than etcd takes. */
const LARGE_BYTES = 1_000_000;
const LATEST = "object.spec.containers.all(c, !c.image.endsWith(':latest'))";

interface Finding {
  readonly policy: string;
  readonly mode: string;
  readonly result: string;
  readonly object: { readonly kind: string; readonly namespace?: string; readonly name: string };
  readonly message?: string;
}

interface CoverageEntry {
  readonly policy: string;
  readonly kind?: { readonly group: string; readonly resource: string };
  readonly state: string;
  readonly reason?: string;
  readonly message?: string;
  readonly missingRule?: object;
}

interface Report {
  readonly results: readonly Finding[];
  readonly coverage: readonly CoverageEntry[];
}

function rule(resource: string, group = '', apiVersion = 'v1'): object {
  return { apiGroups: [group], apiVersions: [apiVersion], resources: [resource], operations: ['CREATE', 'UPDATE'] };
}

function cel(expression: string, message: string): { readonly module: string; readonly settings: object } {
  return { module: 'builtin:cel', settings: { validations: [{ expression, message }] } };
}

function policy(name: string, spec: object, kind = 'ClusterAdmissionPolicy', namespace?: string): object {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return { apiVersion: API, kind, metadata, spec };
}

const POLICIES: readonly object[] = [
  policy('pinned', { ...cel(LATEST, 'pin the version'), mutating: false, rules: [rule('pods')], podTemplates: 'Warn' }),
  policy('watched', { ...cel('false', 'only watched'), mutating: false, mode: 'monitor', rules: [rule('services')] }),
  policy(
    'either',
    {
      policies: {
        latest: cel(LATEST, 'latest'),
        labelled: cel("'app' in object.metadata.?labels.orValue({})", 'no label'),
      },
      expression: 'latest() || labelled()',
      message: 'neither pinned nor labelled',
      rules: [rule('pods')],
    },
    'ClusterAdmissionPolicyGroup',
  ),
  policy('by-namespace', {
    module: 'builtin:cel',
    mutating: false,
    rules: [rule('configmaps')],
    settings: {
      variables: [{ name: 'most', expression: '1000' }],
      validations: [
        {
          expression: 'object.?data.orValue({}).all(key, object.data[key].size() <= variables.most)',
          messageExpression: "'at most ' + string(variables.most)",
        },
      ],
    },
    parameters: {
      from: { namespace: { labels: ['most'] } },
      notFound: 'Allow',
      overridable: ['variables'],
      settingsExpression: "{'variables': [{'name': 'most', 'expression': params.labels['most']}]}",
    },
  }),
  policy(
    'own',
    { ...cel("object.spec.type != 'NodePort'", 'no'), mutating: false, rules: [rule('services')] },
    'AdmissionPolicy',
    'shop',
  ),
  policy('of-the-dead', { ...cel('true', 'never'), mutating: false, rules: [rule('*', 'down.example')] }),
];

function object(apiVersion: string, kind: string, namespace: string, name: string, content: object): object {
  return { apiVersion, kind, metadata: { namespace, name }, ...content };
}

const pinned = { containers: [{ name: 'main', image: 'web:1' }] };
const latest = { containers: [{ name: 'main', image: 'web:latest' }] };
const labels = { app: 'web' };

const OBJECTS: readonly object[] = [
  object('v1', 'Pod', 'shop', 'good', { spec: pinned }),
  object('v1', 'Pod', 'shop', 'bad', { spec: latest }),
  object('apps/v1', 'Deployment', 'shop', 'web', {
    spec: { replicas: 0, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: latest } },
  }),
  object('v1', 'Service', 'shop', 'web', { spec: { type: 'NodePort', ports: [{ port: 80 }] } }),
  object('v1', 'Service', 'play', 'web', { spec: { type: 'NodePort', ports: [{ port: 80 }] } }),
  object('v1', 'ConfigMap', 'shop', 'large', { data: { large: 'x'.repeat(LARGE_BYTES) } }),
  object('v1', 'ConfigMap', 'play', 'large', { data: { large: 'x'.repeat(LARGE_BYTES) } }),
];

/** Nobody answers for the Service of this API. */
const DOWN = {
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: 'v1.down.example' },
  spec: {
    group: 'down.example',
    version: 'v1',
    groupPriorityMinimum: 100,
    versionPriority: 100,
    insecureSkipTLSVerify: true,
    service: { namespace: 'shop', name: 'nobody' },
  },
};

const FOUND = [
  'cap/by-namespace fail ConfigMap shop/large: at most 500',
  'cap/pinned fail Deployment shop/web: in the pod template (spec.template): pin the version',
  'cap/pinned fail Pod shop/bad: pin the version',
  'capg/either fail Pod shop/bad: neither pinned nor labelled',
];
const FOUND_OF_SERVICES = [
  'ap/shop/own fail Service shop/web: no',
  'cap/watched fail (monitor) Service default/kubernetes: only watched',
  'cap/watched fail (monitor) Service play/web: only watched',
  'cap/watched fail (monitor) Service shop/web: only watched',
];

describe('portcullis audit on a real API server', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;

  const apply = async (...objects: readonly object[]): Promise<void> => {
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const { code, stderr } = await cluster.kubectl(['create', '-f', '-'], { stdin });
    assert.equal(code, 0, stderr);
  };

  const audit = (user: string, ...args: readonly string[]): Promise<CommandResult> =>
    portcullis(['audit', '-o', 'json', ...args], { env: { KUBECONFIG: cluster.kubeconfigOf(user) } });

  before(async () => {
    cluster = await startCluster({ users: { [READER]: {}, [NARROW]: {} } });
    await apply(...ALL_KINDS.map((kind) => customResourceDefinition(kind)));
    await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
    await cluster.createNamespace('shop', { most: '500' });
    await cluster.createNamespace('play');
    const read = { verbs: ['get', 'list', 'watch'] };
    const roles = {
      [READER]: [{ apiGroups: ['*'], resources: ['*'], ...read }],
      [NARROW]: [
        {
          apiGroups: [''],
          resources: ['pods', 'podtemplates', 'replicationcontrollers', 'configmaps', 'namespaces'],
          ...read,
        },
        { apiGroups: ['apps', 'batch', 'policies.kubewarden.io'], resources: ['*'], ...read },
      ],
    };
    for (const [name, rules] of Object.entries(roles)) {
      const roleRef = { apiGroup: RBAC, kind: 'ClusterRole', name };
      const subjects = [{ apiGroup: RBAC, kind: 'User', name }];
      await apply(
        { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name }, rules },
        { apiVersion: `${RBAC}/v1`, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects },
      );
    }
    await apply(...OBJECTS, ...POLICIES, DOWN);
    await eventually(async () => {
      const { body } = await cluster.request<
        KubernetesObject & { status?: { conditions?: readonly { reason: string }[] } }
      >('GET', '/apis/apiregistration.k8s.io/v1/apiservices/v1.down.example');
      assert.equal(body.status?.conditions?.[0]?.reason, 'ServiceNotFound');
    });
  });
  after(() => (cluster as Cluster | undefined)?.[Symbol.asyncDispose]());

  function reportOf({ stdout, stderr }: CommandResult): Report {
    assert.notEqual(stdout, '', stderr);
    return JSON.parse(stdout) as Report;
  }

  function found({ results }: Report): readonly string[] {
    return results
      .map(({ policy: by, mode, result, object: { kind, namespace, name }, message }) => {
        const shown = mode === 'monitor' ? `${result} (monitor)` : result;
        return `${by} ${shown} ${kind} ${namespace}/${name}: ${message}`;
      })
      .toSorted();
  }

  function incomplete({ coverage }: Report): readonly string[] {
    return coverage
      .filter(({ state }) => state !== 'Scanned')
      .map(({ policy: by, kind, state, reason }) => `${by} ${kind?.resource ?? '*'} ${state} ${reason}`)
      .toSorted();
  }

  it('finds what policies of all kinds would reject, and says that an API which is down was not read', async () => {
    const result = await audit(ADMIN);
    const report = reportOf(result);
    assert.deepEqual(found(report), [
      ...FOUND_OF_SERVICES.slice(0, 1),
      ...FOUND.slice(0, 3),
      ...FOUND_OF_SERVICES.slice(1),
      ...FOUND.slice(3),
    ]);
    assert.deepEqual(incomplete(report), ['cap/of-the-dead * Failed NotDiscovered']);
    assert.equal(result.code, 3);
  });

  it('is complete where all APIs that count answer', async () => {
    const { code, stdout } = await audit(ADMIN, '--policy', 'cap/pinned', 'capg/either');
    assert.equal(code, 1, stdout);
  });

  it('needs no right to write: a user who only reads gets the same', async () => {
    const [all, read] = [await audit(ADMIN), await audit(READER)];
    assert.deepEqual(found(reportOf(read)), found(reportOf(all)));
    assert.equal(read.code, all.code);
  });

  it('has the findings of all other kinds where one may not be read, and says which right is missing', async () => {
    const result = await audit(NARROW);
    const report = reportOf(result);
    assert.deepEqual(found(report), FOUND);
    assert.deepEqual(incomplete(report), [
      '* policyexceptions Forbidden Forbidden',
      'ap/shop/own services Forbidden Forbidden',
      'cap/of-the-dead * Failed NotDiscovered',
      'cap/watched services Forbidden Forbidden',
    ]);
    assert.equal(result.code, 3);
    const missing = report.coverage.find(({ policy: by }) => by === 'cap/watched');
    assert.deepEqual(missing?.missingRule, { apiGroups: [''], resources: ['services'], verbs: ['list'] });
  });
});

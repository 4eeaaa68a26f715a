// Whose rights governance policies have, on a real API server with an installation of the command.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import {
  ApiError,
  type Connection,
  connectionAs,
  KubernetesCluster,
  tokenCredentials,
} from '../../src/cluster/index.ts';
import { GovernanceControllers, OtherControllers } from '../../src/governance/index.ts';
import { GOVERNANCE_ACCOUNT } from '../../src/governance/access-rules/index.ts';
import { DEFAULT_GOVERNANCE_SETTINGS } from '../../src/governance/settings/index.ts';
import {
  CONFIGURATION_POLICIES,
  CONTROLLER_FIELD_MANAGER,
  kubernetesKind,
  type KubernetesObject,
  POLICIES,
  type ResourceType,
} from '../../src/resources/index.ts';
import { SharedCaches } from '../../src/runtime/index.ts';
import { writeKubeconfig } from '../../src/apiserver/index.ts';
import { type CommandResult, portcullis } from '../cli/command.ts';
import { LoggingProcess } from '../cli/logging-process.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { certificateRefreshed, jobHeld } from '../governance/certificate-refresh-example.ts';
import { type ExampleCluster, governanceExample, succeeding } from '../governance/example-cluster.ts';
import { kafkaInOrder, kafkaWithABadChange, kafkaWithoutOperator } from '../governance/kafka-example.ts';
import { LabObjects } from '../governance/lab-objects.ts';

const PRODUCT = 'portcullis';
const GOVERNED = 'governed';
const SHOP = 'shop';
const TENANT = 'tenant';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const GROUP = 'policy.open-cluster-management.io';
const PATIENCE = { timeoutMs: 60_000 };

const kind = (apiVersion: string, name: string): ResourceType => kubernetesKind(apiVersion, name) ?? assert.fail(name);
const CONFIG_MAPS = kind('v1', 'ConfigMap');
const SECRETS = kind('v1', 'Secret');
const SERVICE_ACCOUNTS = kind('v1', 'ServiceAccount');
const DEPLOYMENTS = kind('apps/v1', 'Deployment');

const configMap = (name: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
});

/** A Policy that creates objects. */
function policyFor(namespace: string, name: string, ...objects: readonly KubernetesObject[]): KubernetesObject {
  const template = {
    apiVersion: `${GROUP}/v1`,
    kind: 'ConfigurationPolicy',
    metadata: { name: `${name}-objects` },
    spec: {
      remediationAction: 'enforce',
      severity: 'low',
      'object-templates': objects.map((objectDefinition) => ({ complianceType: 'musthave', objectDefinition })),
    },
  };
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { namespace, name },
    spec: { disabled: false, remediationAction: 'enforce', 'policy-templates': [{ objectDefinition: template }] },
  };
}

/** A Policy whose only template waits for ever, and would need rights to several kinds. */
function waitingPolicy(): KubernetesObject {
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { namespace: 'default', name: '{{ fromSecret "a" "b" "c" }}' },
  };
  return policyWith(
    'held',
    { pruneObjectBehavior: 'DeleteAll' },
    [{ complianceType: 'musthave', objectDefinition: job }],
    [{ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'default', name: 'nobody', compliance: 'Compliant' }],
  );
}

/** A Policy with templates that create, update, recreate, delete, prune and look up objects. */
function demandingPolicies(): readonly KubernetesObject[] {
  const lookups = '{{ len (lookup "v1" "Node" "" "").items }}{{ copySecretData "default" "secret" | len }}';
  const objects: readonly (readonly [object: KubernetesObject, template?: object])[] = [
    [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'created' } }],
    [{ ...configMap('unwanted') }, { complianceType: 'mustnothave' }],
    [
      { ...configMap('recreated'), data: { a: '{{hub fromConfigMap "" "hub" "a" hub}}' } },
      { recreateOption: 'Always' },
    ],
    [{ ...configMap('looked-up'), data: { a: `nodes: ${lookups}` } }],
  ];
  const templates = objects.map(([objectDefinition, more = {}]) => ({
    complianceType: 'musthave',
    objectDefinition,
    ...more,
  }));
  return [policyWith('demanding', { pruneObjectBehavior: 'DeleteIfCreated' }, templates, [])];
}

function policyWith(
  name: string,
  spec: object,
  templates: readonly object[],
  dependencies: readonly object[],
): KubernetesObject {
  const configuration = {
    apiVersion: `${GROUP}/v1`,
    kind: 'ConfigurationPolicy',
    metadata: { name },
    spec: { remediationAction: 'inform', severity: 'low', ...spec, 'object-templates': templates },
  };
  const certificates = {
    apiVersion: `${GROUP}/v1`,
    kind: 'CertificatePolicy',
    metadata: { name: `${name}-certificates` },
    spec: { remediationAction: 'inform', minimumDuration: '1h', namespaceSelector: { include: ['default'] } },
  };
  const definitions = [configuration, certificates];
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { namespace: GOVERNED, name },
    spec: {
      disabled: false,
      remediationAction: 'enforce',
      dependencies,
      'policy-templates': definitions.map((objectDefinition) => ({ objectDefinition })),
    },
  };
}

async function refused(attempt: Promise<unknown>, expected: RegExp): Promise<void> {
  await assert.rejects(attempt, (error) => {
    assert.ok(error instanceof ApiError, String(error));
    assert.deepEqual([error.code, expected.test(error.message)], [403, true], error.message);
    return true;
  });
}

describe('governance on a kube-apiserver', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;
  let controllerToken: string;
  let connection: Connection;
  let controller: KubernetesCluster;
  let governed: KubernetesCluster;
  let admin: KubernetesCluster;
  let tenant: KubernetesCluster;
  const running = new AsyncDisposableStack();

  const connectionOf = (token: string): Connection => ({
    server: cluster.url,
    ca: readFileSync(cluster.caFile, 'utf8'),
    credentials: tokenCredentials(token),
  });
  const client = (to: Connection): KubernetesCluster =>
    running.use(new KubernetesCluster(to, { fieldManager: CONTROLLER_FIELD_MANAGER }));
  const account = (name: string): string => `system:serviceaccount:${PRODUCT}:${name}`;
  const reaches = (namespace: string, name: string, expected: (status: string) => void): Promise<void> =>
    eventually(async () => {
      const { status } = await admin.get<KubernetesObject & { status?: object }>(POLICIES, { namespace, name });
      expected(JSON.stringify(status ?? {}));
    }, PATIENCE);
  const isThere = async (type: ResourceType, namespace: string, name: string): Promise<boolean> =>
    (await admin.list(type, { namespace })).items.some(({ metadata }) => metadata.name === name);

  const command = async (...args: readonly string[]): Promise<CommandResult> => {
    const result = await portcullis(args, { env: { KUBECONFIG: cluster.kubeconfig } });
    // The doctor finds that nothing runs.
    assert.ok(result.code === 0 || args[0] === 'doctor', result.stderr);
    return result;
  };

  before(async () => {
    cluster = running.use(await startCluster({ users: { [TENANT]: {} } }));
    admin = client(connectionOf(cluster.adminToken));
    tenant = client(connectionOf(cluster.token(TENANT)));
    const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];
    const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' };
    await cluster.expect('POST', `${RBAC}/clusterroles`, {
      ...rbac,
      kind: 'ClusterRole',
      metadata: { name: 'writes-config-maps' },
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs }],
    });
    for (const namespace of [GOVERNED, SHOP]) {
      await cluster.createNamespace(namespace);
    }
    await command('install', '--no-wait', '--governance-role', 'writes-config-maps');
    await cluster.expect('POST', `${RBAC}/namespaces/${SHOP}/roles`, {
      ...rbac,
      kind: 'Role',
      metadata: { name: 'writes-policies' },
      rules: [{ apiGroups: [GROUP], resources: ['*'], verbs }],
    });
    await cluster.expect('POST', `${RBAC}/namespaces/${SHOP}/rolebindings`, {
      ...rbac,
      kind: 'RoleBinding',
      metadata: { name: 'writes-policies' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'writes-policies' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: TENANT }],
    });
    const tokens = `/api/v1/namespaces/${PRODUCT}/serviceaccounts/portcullis-controller/token`;
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } };
    const { status } = await cluster.expect<KubernetesObject & { status: { token: string } }>('POST', tokens, request);
    controllerToken = status.token;
    connection = connectionOf(controllerToken);
    controller = client(connection);
    governed = client(connectionAs(connection, { user: account(GOVERNANCE_ACCOUNT) }));
  });
  after(() => running.disposeAsync());

  it('acts as the governance account, with the groups of a service account', async () => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const review = (await governed.request('POST', path, { body })).json() as {
      readonly status: { readonly userInfo: { readonly username: string; readonly groups: readonly string[] } };
    };
    const { username, groups } = review.status.userInfo;
    assert.equal(username, account(GOVERNANCE_ACCOUNT));
    assert.deepEqual(groups.toSorted(), [
      'system:authenticated',
      'system:serviceaccounts',
      `system:serviceaccounts:${PRODUCT}`,
    ]);
  });

  it('may what a ClusterRole of the administrator grants, and nothing else', async () => {
    await governed.create(CONFIG_MAPS, configMap('granted'));
    await governed.delete(CONFIG_MAPS, { namespace: 'default', name: 'granted' });
    await refused(governed.list(SECRETS, {}), /cannot list resource "secrets"/);
    await refused(governed.list(CONFIGURATION_POLICIES, {}), /cannot list resource "configurationpolicies"/);
    await refused(governed.create(POLICIES, policyFor(SHOP, 'own')), /cannot create resource "policies"/);
  });

  it('gives the controller neither these rights nor those of others', async () => {
    await refused(controller.create(CONFIG_MAPS, configMap('mine')), /cannot create resource "configmaps"/);
    await refused(controller.list(DEPLOYMENTS, {}), /cannot list resource "deployments"/);
    const impersonated = [
      { user: 'admin' },
      { user: account('default') },
      { user: 'system:serviceaccount:kube-system:namespace-controller' },
      { user: account(GOVERNANCE_ACCOUNT), groups: ['system:masters'] },
    ];
    for (const user of impersonated) {
      await refused(client(connectionAs(connection, user)).list(CONFIG_MAPS, {}), /cannot impersonate resource/);
    }
  });

  it('enforces Policies with the rights of the account, and names the rights that it lacks', async () => {
    await using _running = startControllers();
    await admin.create(POLICIES, policyFor(GOVERNED, 'allowed', configMap('made')));
    await admin.create(POLICIES, policyFor(GOVERNED, 'too-much', { ...configMap('made'), kind: 'Secret' }));
    await admin.create(POLICIES, waitingPolicy());
    await reaches(GOVERNED, 'held', (status) => assert.match(status, /"compliant":"Pending"/));
    await reaches(GOVERNED, 'allowed', (status) => assert.match(status, /"compliant":"Compliant"/));
    assert.ok(await isThere(CONFIG_MAPS, 'default', 'made'));
    await reaches(GOVERNED, 'too-much', (status) => {
      assert.match(status, /"compliant":"NonCompliant"/);
      assert.match(
        status,
        /secrets is forbidden: User \W+system:serviceaccount:portcullis:portcullis-governance\W+ cannot list/,
      );
    });
    assert.ok(!(await isThere(SECRETS, 'default', 'made')));
  });

  it('lets the doctor name all rights that a Policy lacks, and an installation grant and revoke them', async () => {
    const missing = async (): Promise<readonly string[]> => {
      const { stdout } = await command('doctor', '-o', 'json');
      const { findings } = JSON.parse(stdout) as { findings: { code: string; where: string; message: string }[] };
      return findings.filter(({ code }) => code === 'PolicyRightsMissing').map((one) => `${one.where}: ${one.message}`);
    };
    const found = await missing();
    for (const [policy, ...rights] of [
      ['too-much', 'list secrets', 'watch secrets', 'create secrets in namespace default'],
      // Its template waits, and nothing of it was tried.
      ['held', 'list jobs.batch', 'create jobs.batch', 'delete jobs.batch', 'list secrets', 'list deployments.apps'],
    ]) {
      const text = found.find((one) =>
        one.startsWith(`policy ${policy} -n ${GOVERNED}: the governance account may not: `),
      );
      for (const right of rights) {
        assert.ok(text?.includes(right), found.join('\n'));
      }
    }
    assert.equal(found.length, 2, found.join('\n'));
    const explained = await command('explain', 'policy/too-much', '-n', GOVERNED);
    assert.match(
      explained.stdout,
      /The governance account may not: list secrets; .*create secrets in namespace default/,
    );
    assert.match(explained.stdout, /governance rights -n governed \| kubectl apply -f -/);
    await cluster.expect('POST', `${RBAC}/clusterroles`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'writes-secrets' },
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['*'] }],
    });
    await command('install', '--no-wait', '--governance-role', 'writes-config-maps,writes-secrets');
    await eventually(() => governed.list(SECRETS, {}), PATIENCE);
    const { stdout } = await command('install', '--no-wait', '--governance-role', 'writes-config-maps');
    assert.match(stdout, /portcullis-governance-writes-secrets deleted/);
    await eventually(() => refused(governed.list(SECRETS, {}), /cannot list/), PATIENCE);
    const { stderr } = await command('install', '--governance-role', 'nobody').catch((error: Error) => ({
      stderr: error.message,
    }));
    assert.match(stderr, /there is no ClusterRole nobody/);
  });

  it('prints a ClusterRole with which Policies can do all that they do', async () => {
    const policies = demandingPolicies();
    const file = join(cluster.folder, 'policies.json');
    await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: policies }));
    const printed = await command('governance', 'rights', '-f', file, '-o', 'json', '--name', 'printed');
    assert.equal(printed.stderr, '');
    await cluster.expect('POST', `${RBAC}/clusterroles`, JSON.parse(printed.stdout) as KubernetesObject);
    await command('install', '--no-wait', '--governance-role', 'printed');
    await admin.create(SECRETS, { ...configMap('secret'), kind: 'Secret' });
    for (const name of ['unwanted', 'recreated']) {
      await admin.create(CONFIG_MAPS, configMap(name));
    }
    await admin.create(CONFIG_MAPS, {
      ...configMap('hub'),
      metadata: { namespace: GOVERNED, name: 'hub' },
      data: { a: 'b' },
    });
    await using _running = startControllers();
    for (const policy of policies) {
      await admin.create(POLICIES, policy);
    }
    await reaches(GOVERNED, 'demanding', (status) => {
      assert.match(status, /"compliant":"Compliant"/);
      assert.doesNotMatch(status, /forbidden|cannot/);
    });
    assert.ok(await isThere(SERVICE_ACCOUNTS, 'default', 'created'));
    assert.ok(!(await isThere(CONFIG_MAPS, 'default', 'unwanted')));
    await admin.delete(POLICIES, { namespace: GOVERNED, name: 'demanding' });
    await eventually(
      async () => assert.ok(!(await isThere(POLICIES, 'local-cluster', 'governed.demanding'))),
      PATIENCE,
    );
    // As the garbage collector, which does not run here.
    await admin.delete(CONFIGURATION_POLICIES, { namespace: 'local-cluster', name: 'demanding' });
    await eventually(async () => assert.ok(!(await isThere(SERVICE_ACCOUNTS, 'default', 'created'))), PATIENCE);
    assert.ok(await isThere(CONFIG_MAPS, 'default', 'recreated'));
    await command('install', '--no-wait', '--governance-role', 'writes-config-maps');
  });

  it('gives a tenant nothing who may write Policies in a namespace that is not governed', async () => {
    await using _running = startControllers();
    const own = policyFor(SHOP, 'own', configMap('stolen'));
    await tenant.create(POLICIES, own);
    const [template] = (own as unknown as { spec: { 'policy-templates': { objectDefinition: KubernetesObject }[] } })
      .spec['policy-templates'];
    const direct = template?.objectDefinition ?? assert.fail('no template');
    await tenant.create(CONFIGURATION_POLICIES, {
      ...direct,
      metadata: { name: 'direct', namespace: SHOP },
    });
    await reaches(SHOP, 'own', (status) => {
      assert.match(status, /"reason":"NamespaceNotGoverned"/);
      assert.doesNotMatch(status, /"compliant"/);
    });
    // A Policy that counts, and comes later, is done.
    await admin.create(POLICIES, policyFor(GOVERNED, 'later', configMap('later')));
    await reaches(GOVERNED, 'later', (status) => assert.match(status, /"compliant":"Compliant"/));
    assert.ok(!(await isThere(CONFIG_MAPS, 'default', 'stolen')));
    assert.ok(!(await isThere(POLICIES, 'local-cluster', `${SHOP}.own`)));
    const found = await admin.get<KubernetesObject & { status?: object }>(CONFIGURATION_POLICIES, {
      namespace: SHOP,
      name: 'direct',
    });
    // A default of the schema, written by no controller.
    assert.deepEqual(found.status, { observedGeneration: -1 });
    await refused(
      tenant.create(POLICIES, policyFor('local-cluster', `${GOVERNED}.mine`, configMap('stolen'))),
      /cannot create resource "policies"/,
    );
  });

  it('does nothing while a controller of Open Cluster Management runs', async () => {
    const labels = { app: 'ocm' };
    const deployment = await admin.create(DEPLOYMENTS, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: SHOP, name: 'config-policy-controller' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'main' }] } },
      },
    });
    await using governance = startControllers();
    await governance.ready;
    await admin.create(POLICIES, policyFor(GOVERNED, 'waiting', configMap('waiting')));
    assert.ok(!(await isThere(POLICIES, 'local-cluster', `${GOVERNED}.waiting`)));
    await admin.delete(DEPLOYMENTS, { namespace: SHOP, name: deployment.metadata.name ?? '' });
    await reaches(GOVERNED, 'waiting', (status) => assert.match(status, /"compliant":"Compliant"/));
    assert.deepEqual(governance.events, ['GovernanceStopped config-policy-controller']);
  });

  describe('with a controller in a process of its own, and the rights that the examples ask for', () => {
    let example: ExampleCluster;
    let process: LoggingProcess;
    before(async () => {
      const kubectl = succeeding((args, stdin) => cluster.kubectl(args, { stdin }));
      example = { objects: new LabObjects(admin), kubectl };
      await kubectl(['apply', '-f', '-'], governanceExample('role'));
      await command('install', '--no-wait', '--governance-role', 'governance-examples');
      const kubeconfig = join(cluster.folder, 'controller');
      await writeKubeconfig(kubeconfig, { server: cluster.url, ca: connection.ca ?? '', token: controllerToken });
      process = new LoggingProcess([
        'controller',
        '--manage-policy-servers',
        `--kubeconfig=${kubeconfig}`,
        `--namespace=${PRODUCT}`,
        `--policy-server-image=${PRODUCT}`,
        '--governance-namespaces=policies',
        '--operations-port=0',
      ]);
    });
    after(() => process[Symbol.asyncDispose]());

    it('applies an operator and what it operates in order', () => kafkaInOrder(example));
    it('suspends what is applied while the operator is gone', () => kafkaWithoutOperator(example));
    it('keeps what is applied while a change fails, and goes back by kubectl', () => kafkaWithABadChange(example));
    it('creates a Job while a certificate needs it', () => certificateRefreshed(example));
    it('announces by status that the Job is deleted', () => jobHeld(example));
  });

  /** The controllers, with the rights of an installation. */
  function startControllers(): AsyncDisposable & { readonly ready: Promise<void>; readonly events: readonly string[] } {
    const log = pino({ level: 'silent' });
    const stop = new AbortController();
    const caches = new SharedCaches({ cluster: controller, log });
    const warnings: string[] = [];
    const events = {
      event: (object: KubernetesObject, _type: string, reason: string) => {
        if (object.kind === 'Deployment') {
          warnings.push(`${reason} ${object.metadata.name ?? ''}`);
        }
      },
    };
    const controllers = new GovernanceControllers({
      cluster: controller,
      governed,
      caches,
      settings: { ...DEFAULT_GOVERNANCE_SETTINGS, namespaces: [GOVERNED] },
      others: new OtherControllers({ caches, events, log, registry: new Registry() }),
      events,
      log,
    });
    const ends = [caches.start(stop.signal), controllers.start(stop.signal)];
    return {
      ready: controllers.ready,
      events: warnings,
      async [Symbol.asyncDispose]() {
        stop.abort();
        await Promise.all(ends);
      },
    };
  }
});

// `portcullis dryrun`: what governance policies would report, on manifests and on an embedded cluster.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { HOUR, NOW, pem } from '../../src/governance/certificates/testing/certificate-scene.ts';
import { ServedLab } from '../governance/served-lab.ts';
import { type CommandOptions, type CommandResult, portcullis } from './command.ts';

const FIXTURES = 'test/fixtures/governance-dryrun';
const PODS = ['-p', `${FIXTURES}/pods.policy.yaml`, `${FIXTURES}/pods.yaml`];
const KAFKA = ['-p', `${FIXTURES}/kafka.policy.yaml`];
const RULE = '-'.repeat(47);

const DIFFS = `# Diffs:
v1 Pod empty/web:

v1 Pod shop/web:
--- shop/web : existing
+++ shop/web : updated
@@ -6,7 +6,8 @@
 spec:
   containers:
   - image: nginx
     name: web
     ports:
+    - containerPort: 8080
     - containerPort: 80
 
v1 Pod web/web:

`;
const MESSAGES = `# Compliance messages:
NonCompliant; violation - pods [web] not found in namespace empty; pods [web] found but not as specified in namespace shop
`;

const GROUP = 'policy.open-cluster-management.io';

function configMapOf(name: string, data: object): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
}

function dryrun(args: readonly string[], options?: CommandOptions): Promise<CommandResult> {
  return portcullis(['dryrun', ...args], options);
}

describe('portcullis dryrun', { concurrency: 2 }, () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-dryrun-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('prints differences and messages, and exits with 2 when a policy is not compliant', async () => {
    const { code, stdout, stderr } = await dryrun(PODS);
    assert.deepEqual([code, stdout, stderr], [2, `${DIFFS}${MESSAGES}`, '']);
  });

  it('exits with 0 when all policies are compliant', async () => {
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kafka' } });
    const definition = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kafka' } };
    const policy = {
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'ConfigurationPolicy',
      metadata: { name: 'namespaces' },
      spec: {
        remediationAction: 'inform',
        'object-templates': [{ complianceType: 'musthave', objectDefinition: definition }],
      },
    };
    const file = join(folder, 'namespace.json');
    await writeFile(file, JSON.stringify(policy));
    const { code, stdout } = await dryrun(['-p', file, '-'], { stdin });
    assert.equal(
      stdout,
      '# Diffs:\nv1 Namespace kafka:\n\n# Compliance messages:\nCompliant; notification - namespaces [kafka] found as specified\n',
    );
    assert.equal(code, 0);
  });

  it('compares the status with what is expected', async () => {
    const { code, stdout } = await dryrun([...PODS, '-c', `${FIXTURES}/pods.status.yaml`, '--no-colors']);
    assert.equal(
      stdout,
      `# Status compare:
.compliant: 'NonCompliant' does match 'NonCompliant'
.relatedObjects[0] matches
.relatedObjects[1] matches
.relatedObjects matches
 Expected status matches the actual status

${DIFFS}${MESSAGES}`,
    );
    assert.equal(code, 2);
  });

  it('writes the status and the messages to files, and prints no differences on request', async () => {
    const [status, messages] = [join(folder, 'status.yaml'), join(folder, 'messages.txt')];
    const args = ['--status-path', status, '--messages-path', messages, '--print-diffs=false'];
    const { stdout } = await dryrun([...PODS, ...args]);
    assert.equal(stdout, '');
    assert.equal(await readFile(messages, 'utf8'), MESSAGES.slice(MESSAGES.indexOf('\n') + 1));
    assert.match(await readFile(status, 'utf8'), /^compliant: NonCompliant\n/);
  });

  it('prints long differences in full on request', async () => {
    const annotations = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`line-${index + 10}`, 'new']));
    const policy = {
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'ConfigurationPolicy',
      metadata: { name: 'long' },
      spec: {
        remediationAction: 'inform',
        'object-templates': [
          {
            complianceType: 'musthave',
            objectDefinition: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', annotations } },
          },
        ],
      },
    };
    const file = join(folder, 'long.json');
    await writeFile(file, JSON.stringify(policy));
    const short = await dryrun(['-p', file]);
    assert.match(short.stdout, /^v1 Namespace default:\n# Truncated: showing 50\/\d+ diff lines:$/m);
    const full = await dryrun(['-p', file, '--full-diffs']);
    assert.doesNotMatch(full.stdout, /Truncated/);
    assert.match(full.stdout, /^\+ {4}line-69: new$/m);
  });

  it('evaluates the templates of a Policy in order, without its inputs nothing that depends on them', async () => {
    const policy = ['-p', `${FIXTURES}/shop.policy.yaml`];
    const without = await dryrun(policy);
    assert.equal(
      without.stdout,
      `shop-settings  ${RULE}
# Diffs:
v1 ConfigMap shop/settings:

# Compliance messages:
NonCompliant; violation - configmaps [settings] not found in namespace shop

shop-runs  ${RULE}
# Diffs:
# Compliance messages:
Pending; Dependencies were not satisfied: 1 is still pending (ConfigurationPolicy shop-settings)
`,
    );
    const { code, stdout } = await dryrun([...policy, `${FIXTURES}/shop.yaml`]);
    assert.equal(
      stdout,
      `shop-settings  ${RULE}
# Diffs:
v1 ConfigMap shop/settings:

# Compliance messages:
Compliant; notification - configmaps [settings] found as specified in namespace shop

shop-runs  ${RULE}
# Diffs:
apps/v1 Deployment shop/shop:
--- shop/shop : existing
+++ shop/shop : updated
@@ -2,7 +2,7 @@
 kind: Deployment
 metadata:
   name: shop
   namespace: shop
 status:
-  availableReplicas: 1
+  availableReplicas: 2
 
# Compliance messages:
NonCompliant; violation - deployments [shop] found but not as specified in namespace shop
`,
    );
    assert.equal(code, 2);
  });

  it('evaluates several Policies that depend on each other, and ignores what is no policy', async () => {
    const { code, stdout, stderr } = await dryrun(['-p', 'examples/governance/kafka.yaml']);
    assert.equal(code, 2);
    assert.deepEqual(
      stdout.split('\n').filter((line) => line.endsWith(RULE)),
      ['kafka-prerequisites', 'kafka-operator', 'kafka-operator/kafka-operator-runs', 'kafka-cluster'].map(
        (name) => `${name}  ${RULE}`,
      ),
    );
    assert.match(
      stdout,
      /^Pending; Dependencies were not satisfied: 1 is still pending \(Policy policies.kafka-operator\)$/m,
    );
    assert.match(stderr, /^note: no policies, and ignored: Namespace policies\. Name/);
  });

  describe('of a kind that is not builtin', () => {
    const compliant =
      '# Compliance messages:\nCompliant; notification - kafkas [events] found as specified in namespace kafka\n';

    it('does not know it without an object, a definition or a mapping', async () => {
      const { code, stdout } = await dryrun(KAFKA);
      assert.equal(code, 2);
      assert.match(stdout, /couldn't find mapping resource with kind Kafka in API version kafka\.strimzi\.io\/v1beta2/);
    });

    it('guesses it from an object, and says so', async () => {
      const { code, stdout, stderr } = await dryrun([...KAFKA, `${FIXTURES}/kafka.yaml`]);
      assert.ok(stdout.endsWith(compliant), stdout);
      assert.match(stderr, /^note: Kafka is taken for kafkas\.kafka\.strimzi\.io, in namespaces: name its kind/);
      assert.equal(code, 0);
    });

    it('takes it from a file of mappings, also of the environment', async () => {
      const file = join(folder, 'mappings.yaml');
      // Upstream's files have names in either case.
      await writeFile(
        file,
        '- {Group: kafka.strimzi.io, Version: v1beta2, Kind: Kafka, Plural: kafkas, Singular: kafka, Scope: namespace}\n',
      );
      const none = await dryrun(KAFKA, { env: { DRYRUN_MAPPINGS_FILE: file } });
      assert.match(none.stdout, /violation - kafkas \[events\] not found in namespace kafka\n$/);
      const found = await dryrun([...KAFKA, `${FIXTURES}/kafka.yaml`, '--mappings-file', file]);
      assert.deepEqual([found.code, found.stderr], [0, '']);
      await writeFile(file, '- {kind: Kafka}\n');
      const invalid = await dryrun([...KAFKA, '--mappings-file', file]);
      assert.deepEqual([invalid.code, /lacks kind, version or plural/.test(invalid.stderr)], [1, true]);
    });
  });

  it('evaluates the certificates of CertificatePolicies, and says which templates have controllers of their own', async () => {
    const template = (kind: string, name: string, spec: object) => ({
      objectDefinition: {
        apiVersion: `${kind === 'Check' ? 'lab.example.com' : 'policy.open-cluster-management.io'}/v1`,
        kind,
        metadata: { name },
        spec,
      },
    });
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: {
        name: 'checks.lab.example.com',
        labels: { 'policy.open-cluster-management.io/policy-type': 'template' },
      },
      spec: {
        group: 'lab.example.com',
        scope: 'Namespaced',
        names: { kind: 'Check', plural: 'checks' },
        versions: [{ name: 'v1', served: true, storage: true }],
      },
    };
    const policy = {
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'Policy',
      metadata: { name: 'mixed' },
      spec: {
        disabled: false,
        'policy-templates': [
          template('CertificatePolicy', 'expiry', {
            namespaceSelector: { include: ['default'] },
            minimumDuration: '300h',
          }),
          template('Check', 'check', {}),
        ],
      },
    };
    // From the time of the scene to the present.
    const hours = (Date.now() - NOW) / HOUR;
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'web' },
      data: { 'tls.crt': Buffer.from(await pem({ from: hours - 2, until: hours + 200 })).toString('base64') },
    };
    const file = join(folder, 'mixed.json');
    await writeFile(file, JSON.stringify(policy));
    const stdin = [definition, secret].map((object) => JSON.stringify(object)).join('\n---\n');
    const { code, stdout, stderr } = await dryrun(['-p', file, '-', '--print-diffs=false'], { stdin });
    assert.equal(code, 2);
    assert.match(
      stdout,
      /^expiry {2}-+\n# Compliance messages:\nNonCompliant; 1 certificates expire in less than 300h0m0s: default:web\n\ncheck {2}-+\n# Compliance messages:\n$/,
    );
    assert.match(stderr, /note: mixed: nothing here evaluates the template check\n$/);
  });

  const ofGroup = (kind: string, name: string, spec: object) => ({
    apiVersion: `${GROUP}/v1`,
    kind,
    metadata: { name },
    spec,
  });

  it('says that an OperatorPolicy is not supported, in a Policy, beside one, and alone', async () => {
    const operator = { ...ofGroup('OperatorPolicy', 'operator', {}), apiVersion: `${GROUP}/v1beta1` };
    const policy = ofGroup('Policy', 'p', { disabled: false, 'policy-templates': [{ objectDefinition: operator }] });
    const unsupported = 'OperatorPolicy is not supported yet: Portcullis evaluates ConfigurationPolicy';
    const both = await dryrun(['-p', '-'], { stdin: `${JSON.stringify(policy)}\n---\n${JSON.stringify(operator)}` });
    assert.ok(both.stdout.includes(`NonCompliant; template-error; ${unsupported}`), both.stdout);
    assert.ok(both.stderr.includes(`note: OperatorPolicy operator is ignored: ${unsupported}`), both.stderr);
    const alone = await dryrun(['-p', '-'], { stdin: JSON.stringify(operator) });
    assert.deepEqual([alone.code, alone.stderr.includes(unsupported)], [1, true], alone.stderr);
  });

  it('asks skipObject before it looks for the kind', async () => {
    const SELECTED = { include: ['default'] };
    const evaluate = async (metadata: object, template: object, spec: object): Promise<string> => {
      const objectDefinition = { apiVersion: 'example.com/v1', kind: 'Widget', metadata };
      const templates = [{ complianceType: 'musthave', objectDefinition, ...template }];
      const policy = ofGroup('ConfigurationPolicy', 'p', {
        remediationAction: 'inform',
        'object-templates': templates,
        ...spec,
      });
      return (await dryrun(['-p', '-', '--print-diffs=false'], { stdin: JSON.stringify(policy) })).stdout;
    };
    const cases: readonly (readonly [metadata: object, template: object, spec: object, expected: RegExp])[] = [
      [{ name: '{{ skipObject }}w' }, {}, {}, /Compliant; .*All objects of kind Widget were skipped/],
      [{ name: 'a', labels: { a: '{{ skipObject (eq .ObjectName "a") }}' } }, {}, {}, /All objects .* were skipped/],
      [{ name: 'a', labels: { a: '{{ skipObject (eq .ObjectName "b") }}' } }, {}, {}, /find mapping/],
      [{ name: 'a', labels: { a: '{{ skipObject (eq .ObjectNamespace "") }}' } }, {}, {}, /were skipped/],
      [
        { name: 'a', labels: { a: '{{ skipObject (eq .ObjectNamespace "default") }}' } },
        {},
        { namespaceSelector: SELECTED },
        /were skipped/,
      ],
      [
        { labels: { a: '{{ if hasPrefix "web" .ObjectName }}{{ skipObject }}{{ end }}' } },
        { objectSelector: {} },
        { namespaceSelector: SELECTED },
        /Compliant; .*No objects of kind Widget were matched/,
      ],
      [{}, { objectSelector: {} }, { namespaceSelector: SELECTED }, /find mapping/],
    ];
    for (const [metadata, template, spec, expected] of cases) {
      assert.match(await evaluate(metadata, template, spec), expected, JSON.stringify(metadata));
    }
  });

  it('reads a text of several lines as text, whatever stands around toInt and its like', async () => {
    const text = '{{ if true }}\nsize: {{ "3" | toInt }}\nall: {{ copyConfigMapData "default" "settings" }}\n{{ end }}';
    const raw =
      '{{hub with "x" hub}}\n- {complianceType: musthave, objectDefinition: {apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: default}, data: \'{{hub "{a: b}" | toLiteral hub}}\'}}\n{{hub end hub}}';
    const configuration = ofGroup('ConfigurationPolicy', 'text', {
      remediationAction: 'inform',
      'object-templates': [
        {
          complianceType: 'musthave',
          objectDefinition: configMapOf('made', { text, a: 'b' }),
        },
      ],
    });
    const ofHub = ofGroup('ConfigurationPolicy', 'raw', { remediationAction: 'inform', 'object-templates-raw': raw });
    const templates = [configuration, ofHub].map((objectDefinition) => ({ objectDefinition }));
    const policy = ofGroup('Policy', 'p', { disabled: false, 'policy-templates': templates });
    const file = join(folder, 'text.json');
    await writeFile(file, JSON.stringify(policy));
    const made = configMapOf('made', { text: '\nsize: 3\nall: {"k":"v"}\n', a: 'b' });
    const stdin = [configMapOf('settings', { k: 'v' }), made].map((one) => JSON.stringify(one)).join('\n---\n');
    const { code, stdout } = await dryrun(['-p', file, '-'], { stdin });
    assert.equal(code, 0, stdout);
  });

  it('refuses what it cannot evaluate', async () => {
    const nothing = await dryrun(['-p', `${FIXTURES}/pods.yaml`]);
    assert.equal(nothing.code, 1);
    assert.match(
      nothing.stderr,
      /no policy in .*pods\.yaml: expected Policy, PolicySet, ConfigurationPolicy, CertificatePolicy/,
    );
    const stdin = JSON.stringify({
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'ConfigurationPolicy',
      metadata: { name: 'bad' },
      spec: { remediationAction: 'inform', 'object-templates': [{ complianceType: 'sometimes' }] },
    });
    const invalid = await dryrun(['-p', '-'], { stdin });
    assert.equal(invalid.code, 1);
    assert.match(invalid.stderr, /error: ConfigurationPolicy bad cannot be tried: .*complianceType/);
  });
});

describe('portcullis dryrun --from-cluster', () => {
  let served: ServedLab;
  before(async () => {
    served = await ServedLab.start();
    await served.lab.stopControllers();
    await served.lab.namespace('web', 'shop', 'empty', 'local-cluster');
    const pod = (namespace: string, containerPort: number) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace },
      spec: { containers: [{ name: 'web', image: 'nginx', ports: [{ containerPort }] }] },
    });
    await served.lab.apply(pod('web', 8080), pod('shop', 80));
  });
  after(() => served[Symbol.asyncDispose]());

  it('reads the objects of a cluster, and writes nothing to it', async () => {
    const before = served.lab.cluster.revision;
    const policies = [...PODS.slice(0, 2), '-p', 'examples/governance/kafka.yaml'];
    const { code, stdout } = await served.run('admin', 'dryrun', ...policies, '--from-cluster');
    assert.equal(code, 2);
    assert.match(
      stdout,
      /pods \[web\] not found in namespace empty; pods \[web\] found but not as specified in namespace shop$/m,
    );
    assert.match(stdout, /^kafka-operator {2}-/m);
    assert.equal(served.lab.cluster.revision, before);
  });

  it('says what the user may not read', async () => {
    const { code, stdout, stderr } = await served.run('alice', 'dryrun', ...PODS.slice(0, 2), '--from-cluster');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /namespaces is forbidden: User "alice" cannot list/);
  });

  it('takes no inputs beside a cluster', async () => {
    const { code, stderr } = await served.run('admin', 'dryrun', ...PODS, '--from-cluster');
    assert.deepEqual([code, /expected no inputs with --from-cluster/.test(stderr)], [2, true]);
  });

  it('prints the kinds of a cluster as a file of mappings', async () => {
    const { code, stdout } = await served.run('admin', 'dryrun', 'generate');
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^- group: lab\.example\.com\n {2}version: v1\n {2}kind: Check\n {2}singular: check\n {2}plural: checks\n {2}scope: namespace\n/m,
    );
  });
});

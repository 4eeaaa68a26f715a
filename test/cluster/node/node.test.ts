import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../binaries.ts';
import { type Cluster, type KubernetesObject, startCluster } from '../cluster.ts';
import { eventually } from '../eventually.ts';
import { createLoopbackCertificate, type LoopbackCertificate } from '../loopback-certificate.ts';
import { startNode, type TestNode } from './node.ts';

const NAMESPACE = 'served';
const LABELS = { app: 'served' };
/** Time limit for starts of processes on a machine under load. */
const PATIENCE = { timeoutMs: 60_000 };

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** A policies file with one policy, which rejects all requests with a word. */
function policies(word: string): string {
  return JSON.stringify({
    refusing: {
      module: 'builtin:cel',
      settings: { validations: [{ expression: 'false', message: word }] },
    },
  });
}

describe('the node of the tests', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;
  let node: TestNode;
  let certificate: LoopbackCertificate;

  before(async () => {
    cluster = await startCluster({ controllers: true });
    node = await startNode(cluster);
    certificate = await createLoopbackCertificate([`served.${NAMESPACE}.svc`]);
  });
  after(async () => {
    await (node as TestNode | undefined)?.stop();
    await (cluster as Cluster | undefined)?.stop();
  });

  const apply = async (...objects: readonly object[]): Promise<void> => {
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const { code, stderr } = await cluster.kubectl(['apply', '-f', '-'], { stdin });
    assert.equal(code, 0, stderr);
  };
  const deploymentIsAvailable = async (): Promise<void> => {
    const path = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/served`;
    const { metadata, spec, status } = await cluster.expect<KubernetesObject & Record<string, Record<string, number>>>(
      'GET',
      path,
    );
    const { generation } = metadata as { generation?: number };
    assert.equal(status?.['observedGeneration'], generation, node.logs());
    assert.equal(status?.['updatedReplicas'], spec?.['replicas'], node.logs());
    assert.equal(status?.['availableReplicas'], spec?.['replicas'], node.logs());
    assert.equal(status?.['replicas'], spec?.['replicas']);
  };
  const answer = async (): Promise<string> => {
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'asked-' } };
    const { status, body } = await cluster.request<{ message?: string }>(
      'POST',
      `/api/v1/namespaces/${NAMESPACE}/configmaps?dryRun=All`,
      configMap,
    );
    return `${status} ${body.message ?? ''}`;
  };

  it('runs the Pods of a Deployment, whose Service the API server calls', async () => {
    await cluster.createNamespace(NAMESPACE);
    const volumes = [
      { name: 'tls', secret: { secretName: 'tls' } },
      { name: 'policies', configMap: { name: 'policies' } },
      { name: 'data', emptyDir: {} },
    ];
    const container = {
      name: 'portcullis',
      image: 'registry.test/portcullis:1',
      args: Object.entries({
        policies: '/etc/policies/policies.yml',
        'policies-download-dir': '/data',
        port: '8443',
        'cert-file': '/etc/tls/tls.crt',
        'key-file': '/etc/tls/tls.key',
        workers: '1',
        // Open connections are closed after a response, so that no request fails.
        'shutdown-delay': '1',
      }).reduce((args, [name, value]) => [...args, `--${name}`, value], ['serve']),
      // Services stop using the Pod in this time.
      lifecycle: { preStop: { sleep: { seconds: 1 } } },
      env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
      ports: [{ name: 'webhook', containerPort: 8443 }],
      readinessProbe: { httpGet: { path: '/readyz', port: 8081 }, periodSeconds: 1 },
      volumeMounts: [
        { name: 'tls', mountPath: '/etc/tls' },
        { name: 'policies', mountPath: '/etc/policies' },
        { name: 'data', mountPath: '/data' },
      ],
    };
    await apply(
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'served', namespace: NAMESPACE },
        spec: {
          replicas: 2,
          selector: { matchLabels: LABELS },
          template: { metadata: { labels: LABELS }, spec: { containers: [container], volumes } },
        },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'served', namespace: NAMESPACE },
        spec: { selector: LABELS, ports: [{ port: 443, targetPort: 'webhook' }] },
      },
    );
    await eventually(async () => {
      assert.match(node.logs(), /waiting: Secret served\/tls not found/);
    }, PATIENCE);
    await apply(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        type: 'kubernetes.io/tls',
        metadata: { name: 'tls', namespace: NAMESPACE },
        data: { 'tls.crt': base64(certificate.cert), 'tls.key': base64(certificate.key) },
      },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'policies', namespace: NAMESPACE },
        data: { 'policies.yml': policies('first') },
      },
    );
    await eventually(deploymentIsAvailable, PATIENCE);
    await apply({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'served' },
      webhooks: [
        {
          name: 'served.portcullis.test',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          clientConfig: {
            service: { namespace: NAMESPACE, name: 'served', path: '/validate/refusing' },
            caBundle: base64(certificate.cert),
          },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } },
        },
      ],
    });
    await eventually(async () => assert.match(await answer(), /denied the request: .*first/), PATIENCE);
  });

  it('gives each Pod its own address and token', async () => {
    const pods = node.pods(NAMESPACE);
    assert.equal(new Set(pods.map(({ address }) => address)).size, 2);
    const [pod] = pods;
    assert.ok(pod);
    const read = await cluster.expect<KubernetesObject & { status: { podIP: string } }>(
      'GET',
      `/api/v1/namespaces/${NAMESPACE}/pods/${pod.name}`,
    );
    assert.equal(read.status.podIP, pod.address);
    assert.ok(pod.address.startsWith(`${cluster.network}.`));
  });

  it('changes the files of a Pod with the ConfigMap that they are', async () => {
    const body = { data: { 'policies.yml': policies('second') } };
    await cluster.expect('PATCH', `/api/v1/namespaces/${NAMESPACE}/configmaps/policies`, body);
    await eventually(async () => assert.match(await answer(), /second/), PATIENCE);
  });

  it('starts a container again that was killed', async () => {
    const [pod] = node.pods(NAMESPACE);
    assert.ok(pod);
    await pod.kill();
    await eventually(async () => {
      assert.equal(pod.restarts, 1);
      assert.ok(pod.isReady);
    }, PATIENCE);
    await eventually(deploymentIsAvailable, PATIENCE);
  });

  it('replaces Pods one by one when the Deployment changes, and loses no request', async () => {
    const before = node.pods(NAMESPACE).map(({ name }) => name);
    const restarted = await cluster.kubectl(['rollout', 'restart', 'deployment', 'served', '-n', NAMESPACE]);
    assert.equal(restarted.code, 0, restarted.stderr);
    const answers = new Map<string, number>();
    let isOver = false;
    const asking = (async () => {
      while (!isOver) {
        const text = await answer();
        answers.set(text, (answers.get(text) ?? 0) + 1);
      }
    })();
    await eventually(deploymentIsAvailable, PATIENCE);
    isOver = true;
    await asking;
    assert.ok(node.pods(NAMESPACE).every(({ name }) => !before.includes(name)));
    assert.ok(
      [...answers.keys()].every((text) => text.includes('denied the request')),
      JSON.stringify([...answers]),
    );
  });

  it('ends Pods whose Deployment is deleted', async () => {
    const { code, stderr } = await cluster.kubectl(['delete', 'deployment', 'served', '-n', NAMESPACE]);
    assert.equal(code, 0, stderr);
    await eventually(async () => {
      const { body } = await cluster.request<{ items: unknown[] }>('GET', `/api/v1/namespaces/${NAMESPACE}/pods`);
      assert.deepEqual(body.items, []);
      assert.deepEqual(node.pods(NAMESPACE), []);
    }, PATIENCE);
    assert.deepEqual(node.problems, []);
  });
});

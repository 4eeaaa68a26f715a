// An API server with only pods: lists them in pages, then sends changes as fast as the client reads. Its argument is one JSON
// line of options; it prints its address, and ends when its stdin ends.
import { createServer } from 'node:https';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Options {
  readonly cert: string;
  readonly key: string;
  readonly pods: number;
  readonly events: number;
}

const { cert, key, pods, events } = JSON.parse(process.argv[2] ?? '{}') as Options;

/** A placeholder for resource versions, which have as many digits. */
const NO_VERSION = '100000000';

/** A pod as a kubelet reports it: two containers, probes, volumes, conditions, managed fields. 4.2 KB. */
function podText(index: number): string {
  const namespace = `team-${index % 100}`;
  const name = `web-${index}-6d4cf56db6-${(index * 7919).toString(36)}`;
  const container = (suffix: string): object => ({
    name: suffix,
    image: `registry.example.com/shop/${suffix}@sha256:${index.toString(16).padStart(64, '0')}`,
    args: ['--listen', ':8080', '--log-level', 'info'],
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
      { name: 'DATABASE', value: `postgres://db-${index % 50}.${namespace}.svc:5432/app` },
    ],
    ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
    resources: { limits: { cpu: '500m', memory: '256Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    readinessProbe: {
      httpGet: { path: '/ready', port: 'http', scheme: 'HTTP' },
      periodSeconds: 10,
      failureThreshold: 3,
    },
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    volumeMounts: [{ name: 'token', readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }],
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
  });
  const time = '2026-01-01T00:00:00Z';
  return JSON.stringify({
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name,
      generateName: `web-${index}-6d4cf56db6-`,
      namespace,
      uid: `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`,
      resourceVersion: NO_VERSION,
      creationTimestamp: time,
      labels: { app: `web-${index % 500}`, tier: 'frontend', 'pod-template-hash': '6d4cf56db6' },
      annotations: { 'example.com/checksum': index.toString(16).padStart(40, '0') },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: `web-${index}-6d4cf56db6`,
          uid: `00000000-0000-4000-9000-${index.toString(16).padStart(12, '0')}`,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [
        {
          manager: 'kube-controller-manager',
          operation: 'Update',
          apiVersion: 'v1',
          time,
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:metadata': { 'f:labels': { '.': {}, 'f:app': {}, 'f:tier': {} } },
            'f:spec': { 'f:containers': {}, 'f:restartPolicy': {} },
          },
        },
      ],
    },
    spec: {
      volumes: [
        {
          name: 'token',
          projected: {
            sources: [{ serviceAccountToken: { expirationSeconds: 3607, path: 'token' } }],
            defaultMode: 420,
          },
        },
      ],
      containers: [container('web'), container('proxy')],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: 'default',
      nodeName: `node-${index % 200}`,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      schedulerName: 'default-scheduler',
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      ],
      priority: 0,
    },
    status: {
      phase: 'Running',
      conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => ({
        type,
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: time,
      })),
      hostIP: `10.0.${index % 200}.1`,
      podIP: `10.1.${index % 200}.${Math.floor(index / 200)}`,
      startTime: time,
      containerStatuses: ['web', 'proxy'].map((one) => ({
        name: one,
        state: { running: { startedAt: time } },
        ready: true,
        restartCount: 0,
        containerID: `containerd://${index.toString(16).padStart(64, '0')}`,
      })),
      qosClass: 'Burstable',
    },
  });
}

const texts = Array.from({ length: pods }, (_, index) => podText(index));

function page(url: URL, response: ServerResponse): void {
  const limit = Number(url.searchParams.get('limit') ?? pods);
  const start = Number(url.searchParams.get('continue') ?? 0);
  const end = Math.min(pods, start + limit);
  const next = end < pods ? `,"continue":"${end}"` : '';
  const metadata = `{"resourceVersion":"${NO_VERSION}"${next}}`;
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(
    `{"kind":"PodList","apiVersion":"v1","metadata":${metadata},"items":[${texts.slice(start, end).join(',')}]}`,
  );
}

/** Writes changes of one pod after the other, each with a new version, a few dozen at a time. */
async function stream(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  const lines = texts.map((text) => Buffer.from(`{"type":"MODIFIED","object":${text}}\n`));
  const offsets = lines.map((line) => line.indexOf(NO_VERSION));
  for (let sent = 0; sent < events && !response.destroyed;) {
    const piece: Buffer[] = [];
    for (const until = Math.min(events, sent + 32); sent < until; sent += 1) {
      const line = lines[sent % pods] ?? Buffer.alloc(0);
      const copy = Buffer.from(line);
      copy.write(String(Number(NO_VERSION) + sent + 1), offsets[sent % pods] ?? 0);
      piece.push(copy);
    }
    if (!response.write(Buffer.concat(piece))) {
      // The bench ends this process after its client.
      await once(response, 'drain');
    }
  }
}

const server = createServer({ cert, key }, (request, response) => {
  const url = new URL(request.url ?? '/', 'https://127.0.0.1');
  if (url.searchParams.get('watch') === 'true') {
    void stream(response);
  } else {
    page(url, response);
  }
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  const bytes = Math.round(Buffer.byteLength(texts.join('')) / pods);
  console.log(JSON.stringify({ url: `https://127.0.0.1:${port}`, bytes }));
});
process.stdin.resume().on('end', () => process.exit(0));

// How etcd, kube-apiserver and kube-controller-manager are started for a test cluster.
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterUser } from './cluster.ts';

export interface Ports {
  readonly etcdClient: number;
  readonly etcdPeer: number;
  readonly apiServer: number;
}

/** Controllers that tests need. Those of EndpointSlices are not: addresses of pods are loopback, which slices may not have. */
const CONTROLLERS = [
  'clusterrole-aggregation-controller',
  'deployment-controller',
  'disruption-controller',
  'garbage-collector-controller',
  'job-controller',
  'namespace-controller',
  'replicaset-controller',
  'root-ca-certificate-publisher-controller',
  'serviceaccount-controller',
];

/** Bits of an IPv4 address behind its network's 127. */
const BYTE = 256;

/**
 * The three numbers that addresses of a cluster begin with: of its own, as long as the port of its API server is. Of the last one,
 * Services have 0 to 127 and Pods the rest.
 */
export function clusterNetwork(apiServerPort: number): string {
  return `127.${Math.trunc(apiServerPort / BYTE)}.${apiServerPort % BYTE}`;
}

/** The files that the programs read at start: the key pair of service account tokens, and the tokens of the users. */
export function writeCredentials(
  folder: string,
  users: Readonly<Record<string, ClusterUser>>,
  tokens: ReadonlyMap<string, string>,
): void {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const write = (name: string, text: string | Buffer): void => writeFileSync(join(folder, name), text, { mode: 0o600 });
  write('sa.key', keys.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  write('sa.pub', keys.publicKey.export({ type: 'spki', format: 'pem' }));
  const lines = Object.entries(users).map(
    ([name, user]) => `${tokens.get(name)},${name},${name},"${(user.groups ?? []).join(',')}"`,
  );
  write('tokens.csv', `${lines.join('\n')}\n`);
  mkdirSync(join(folder, 'certs'), { mode: 0o700 });
}

export function etcdArgs(folder: string, ports: Ports): string[] {
  const client = `http://127.0.0.1:${ports.etcdClient}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return [
    `--data-dir=${join(folder, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ];
}

export function apiServerArgs(folder: string, ports: Ports, controllers: boolean): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${ports.etcdClient}`,
    `--secure-port=${ports.apiServer}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--cert-dir=${join(folder, 'certs')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${join(folder, 'sa.pub')}`,
    `--service-account-signing-key-file=${join(folder, 'sa.key')}`,
    `--token-auth-file=${join(folder, 'tokens.csv')}`,
    '--authorization-mode=RBAC',
    // As in nearly every cluster: whether containers may be privileged is for policies to say.
    '--allow-privileged=true',
    // Loopback, so that something can listen on the address of a Service: the API server calls webhooks there.
    // Only with a node are Services addresses of this machine.
    `--service-cluster-ip-range=${controllers ? `${clusterNetwork(ports.apiServer)}.0/25` : '10.0.0.0/24'}`,
    // Without controllers nobody creates the service account "default" of a namespace, which this plugin would demand for every pod.
    ...(controllers ? [] : ['--disable-admission-plugins=ServiceAccount']),
  ];
}

export function controllerManagerArgs(folder: string, kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--controllers=${CONTROLLERS.join(',')}`,
    `--root-ca-file=${join(folder, 'certs', 'apiserver.crt')}`,
    '--leader-elect=false',
    // As installers of clusters do: each controller has a user of its own.
    '--use-service-account-credentials=true',
    '--bind-address=127.0.0.1',
    // It serves nothing.
    '--secure-port=0',
    // Its own limits are for clusters that others use, too.
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
    '--concurrent-namespace-syncs=10',
  ];
}

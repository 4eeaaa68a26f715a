// The arguments and credentials of etcd, kube-apiserver and kube-controller-manager in a test cluster.
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A user without rights. Tests grant rights with RBAC objects. */
export interface ClusterUser {
  /** Groups besides `system:authenticated`. Default: none. */
  readonly groups?: readonly string[];
}

export interface Ports {
  readonly etcdClient: number;
  readonly etcdPeer: number;
  readonly apiServer: number;
}

/**
 * Controllers that tests need. The EndpointSlice controllers do not run, because Pods have loopback addresses, which slices must
 * not contain.
 */
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
  'validatingadmissionpolicy-status-controller',
];

/** Number of values of a byte in an IPv4 address. */
const BYTE_VALUES = 256;

/**
 * The first three bytes of all addresses of a cluster. They follow from the port of its API server, so running clusters have
 * different ones. The last byte is 0 to 127 for Services, and 128 to 255 for Pods.
 */
export function clusterNetwork(apiServerPort: number): string {
  return `127.${Math.trunc(apiServerPort / BYTE_VALUES)}.${apiServerPort % BYTE_VALUES}`;
}

/** Writes the files that the programs read: the key pair of service account tokens, and the tokens of the users. */
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
    // As in nearly every cluster. Policies decide whether containers may be privileged.
    '--allow-privileged=true',
    // With a node, addresses of Services are loopback, so that its proxy can listen on them: the API server calls webhooks there.
    `--service-cluster-ip-range=${controllers ? `${clusterNetwork(ports.apiServer)}.0/25` : '10.0.0.0/24'}`,
    // This plugin requires the service account "default" for each pod, which only a controller creates.
    ...(controllers ? [] : ['--disable-admission-plugins=ServiceAccount']),
  ];
}

export function controllerManagerArgs(folder: string, kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--controllers=${CONTROLLERS.join(',')}`,
    `--root-ca-file=${join(folder, 'certs', 'apiserver.crt')}`,
    '--leader-elect=false',
    // As kubeadm does: each controller has its own user.
    '--use-service-account-credentials=true',
    '--bind-address=127.0.0.1',
    // Its metrics are not read.
    '--secure-port=0',
    // The default limits, 20 requests a second, would slow tests down.
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
    '--concurrent-namespace-syncs=10',
  ];
}

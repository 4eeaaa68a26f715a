// The cluster of `portcullis start`: an embedded one in a file, with our kinds, served for kubectl on loopback.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AdmissionGuard, EmbeddedCluster, Gateway, writeKubeconfig } from '../../apiserver/index.ts';
import { ApiError } from '../../cluster/index.ts';
import {
  ALL_KINDS,
  customResourceDefinition,
  type JsonObject,
  keyOf,
  knownKind,
  type KubernetesObject,
} from '../../resources/index.ts';
import type { LocalCertificates } from '../../control/index.ts';
import type { Logger } from '../../log/index.ts';
import { onFreePort } from './free-port.ts';

/** The field manager of objects that `start` applies. */
const FIELD_MANAGER = 'portcullis-start';
/** Length of tokens: twice the 128 bits that cannot be guessed. Bytes. */
const TOKEN_BYTES = 32;

interface LocalClusterOptions {
  readonly dataDir: string;
  readonly certificates: LocalCertificates;
  /** The first port to try for kubectl. */
  readonly port: number;
  /** Whether NetworkPolicy has a status. */
  readonly networkPolicyStatus: boolean;
  /** Checks writes, as the ValidatingAdmissionPolicies of an installation do. */
  readonly guard: AdmissionGuard;
  readonly log: Logger;
}

export interface LocalCluster {
  readonly cluster: EmbeddedCluster;
  /** The kubeconfig, readable by this user only. */
  readonly kubeconfig: string;
  readonly url: string;
  /** Whether the cluster was empty. */
  readonly isNew: boolean;
  stop(): Promise<void>;
}

/** Opens the cluster of a data folder, installs our CRDs, and serves it for kubectl. */
export async function startLocalCluster({
  dataDir,
  certificates,
  port,
  networkPolicyStatus,
  guard,
  log,
}: LocalClusterOptions): Promise<LocalCluster> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const read = (file: string): string => readFileSync(file, 'utf8');
  const cluster = await EmbeddedCluster.open({
    file: join(dataDir, 'cluster.sqlite'),
    // The only client certificate of the CA, so that the webhook for our own kinds answers nobody else.
    webhookIdentity: { cert: read(certificates.controlCertFile), key: read(certificates.controlKeyFile) },
    networkPolicyStatus,
    guard,
    tokens: [{ token, user: { username: 'admin', groups: ['system:masters', 'system:authenticated'] } }],
    onRecovery: ({ file, movedTo, reason }) => {
      const kept = movedTo === undefined ? '' : ` It was moved to ${movedTo}.`;
      process.stderr.write(
        `The cluster's file ${file} is damaged (${reason}).${kept} Starting with an empty cluster.\n`,
      );
    },
  });
  try {
    const isNew = await installKinds(cluster);
    const { gateway, url } = await onFreePort(port, async (free) => {
      const tls = { cert: read(certificates.certFile), key: read(certificates.keyFile) };
      const candidate = new Gateway({
        cluster,
        authenticator: cluster.authenticator,
        tls,
        onError: (error, method, path) => log.error({ err: error, method, path }, 'a request to the cluster failed'),
      });
      return { gateway: candidate, ...(await candidate.start({ port: free })) };
    });
    const kubeconfig = join(dataDir, 'kubeconfig');
    await writeKubeconfig(kubeconfig, { server: url, ca: read(certificates.caFile), token });
    return {
      cluster,
      kubeconfig,
      url,
      isNew,
      stop: async () => {
        await gateway.stop();
        await cluster.close();
      },
    };
  } catch (error) {
    await cluster.close();
    throw error;
  }
}

/** Installs or updates our CRDs; returns whether the cluster had none of them. */
async function installKinds(cluster: EmbeddedCluster): Promise<boolean> {
  const type = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
  const definitions = ALL_KINDS.map((kind) => customResourceDefinition(kind));
  const first = definitions[0]?.metadata.name ?? '';
  const isNew = cluster.state.get(type, undefined, first) === undefined;
  for (const definition of definitions) {
    await applyObject(cluster, definition);
  }
  return isNew;
}

/**
 * Applies an object, of a kind that the cluster serves.
 * @throws ApiError
 */
export async function applyObject(cluster: EmbeddedCluster, object: KubernetesObject): Promise<void> {
  const type = await cluster.admin.discovery.find(object.apiVersion, object.kind);
  if (type === undefined) {
    throw ApiError.badRequest(`the cluster has no kind ${object.kind} in ${object.apiVersion}`);
  }
  const body = object as JsonObject;
  await cluster.admin.patch(type, keyOf(object), { type: 'apply', body, force: true }, { fieldManager: FIELD_MANAGER });
}

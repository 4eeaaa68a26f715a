// The cluster of `portcullis start`: an embedded one in a file, with our kinds, served for kubectl on loopback.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AdmissionGuard, EmbeddedCluster, Gateway } from '../../apiserver/index.ts';
import { ALL_KINDS, customResourceDefinition, knownKind, reportDefinitions } from '../../resources/index.ts';
import type { LocalCertificates } from '../../control/certificates/index.ts';
import type { Logger } from '../../log/index.ts';
import { applyObject } from './apply-object.ts';
import { ensureTokens, staticTokens, writeKubeconfigs } from './credentials.ts';

interface LocalClusterOptions {
  readonly dataDir: string;
  readonly certificates: LocalCertificates;
  /** The port for kubectl. */
  readonly port: number;
  /** Whether NetworkPolicy has a status. */
  readonly networkPolicyStatus: boolean;
  /** Checks writes, as the ValidatingAdmissionPolicies of an installation do. */
  readonly guard: AdmissionGuard;
  readonly log: Logger;
}

export interface LocalCluster {
  readonly cluster: EmbeddedCluster;
  readonly url: string;
  /** Whether the cluster was empty. */
  readonly isNew: boolean;
  stop(): Promise<void>;
}

/** Opens the cluster of a data folder, installs our CRDs, and serves it for kubectl and for the other processes of `start`. */
export async function startLocalCluster({
  dataDir,
  certificates,
  port,
  networkPolicyStatus,
  guard,
  log,
}: LocalClusterOptions): Promise<LocalCluster> {
  const tokens = ensureTokens(dataDir);
  const read = (file: string): string => readFileSync(file, 'utf8');
  const cluster = await EmbeddedCluster.open({
    file: join(dataDir, 'cluster.sqlite'),
    // The only client certificate of the CA, so that the webhook for our own kinds answers nobody else.
    webhookIdentity: { cert: read(certificates.controlCertFile), key: read(certificates.controlKeyFile) },
    networkPolicyStatus,
    guard,
    tokens: staticTokens(tokens),
    onRecovery: ({ file, movedTo, reason }) => {
      const kept = movedTo === undefined ? '' : ` It was moved to ${movedTo}.`;
      process.stderr.write(
        `The cluster's file ${file} is damaged (${reason}).${kept} Starting with an empty cluster.\n`,
      );
    },
  });
  try {
    const isNew = await installKinds(cluster);
    const gateway = new Gateway({
      cluster,
      authenticator: cluster.authenticator,
      tls: { cert: read(certificates.certFile), key: read(certificates.keyFile) },
      onError: (error, method, path) => log.error({ err: error, method, path }, 'a request to the cluster failed'),
    });
    const { url } = await gateway.start({ port });
    await writeKubeconfigs(dataDir, tokens, { server: url, ca: read(certificates.caFile) });
    return {
      cluster,
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

/** Installs or updates our CRDs and those of OpenReports; returns whether the cluster had none of them. */
async function installKinds(cluster: EmbeddedCluster): Promise<boolean> {
  const type = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
  const definitions = [...ALL_KINDS.map((kind) => customResourceDefinition(kind)), ...reportDefinitions()];
  const first = definitions[0]?.metadata.name ?? '';
  const isNew = cluster.state.get(type, undefined, first) === undefined;
  for (const definition of definitions) {
    await applyObject(cluster, definition);
  }
  return isNew;
}

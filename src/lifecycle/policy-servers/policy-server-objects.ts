// All objects of a PolicyServer. Pure.
import type { AccessRule, JsonObject, PolicyServerObject } from '../../resources/index.ts';
import { moduleSources, SOURCES_FILE } from './module-sources.ts';
import type { ObjectKind } from './object-kinds.ts';
import { policyServerAccess, policyServerServiceAccount } from './policy-server-access.ts';
import { policyServerDeployment } from './policy-server-deployment.ts';
import { policyServerLabels, policyServerObjectName } from '../certificates/policy-server-names.ts';
import {
  policyServerDisruptionBudget,
  policyServerNetworkPolicy,
  policyServerService,
} from './policy-server-network.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';
import type { VerificationTexts } from './verification-files.ts';

/** The objects of a PolicyServer, at most one of each kind. A missing kind is removed from the cluster. */
export type PolicyServerObjects = Readonly<
  Partial<Record<ObjectKind, JsonObject>> & { readonly ClusterRole: JsonObject }
>;

/**
 * @param contextAwareRules access for its context-aware policies, see `contextAwareRules`
 * @param verification what its processes verify signatures by. Default: they verify none
 */
export function policyServerObjects(
  server: PolicyServerObject,
  settings: PolicyServerSettings,
  contextAwareRules: readonly AccessRule[],
  verification: VerificationTexts = {},
): PolicyServerObjects {
  const objects = [
    policyServerServiceAccount(server, settings),
    ...policyServerAccess(server, settings, contextAwareRules),
    sourcesConfigMap(server, settings),
    settings.networkPolicies === false ? undefined : policyServerNetworkPolicy(server, settings),
    policyServerDisruptionBudget(server, settings),
    policyServerService(server, settings),
    policyServerDeployment(server, settings, verification),
  ];
  return Object.fromEntries(
    objects.filter((object) => object !== undefined).map((object) => [object['kind'], object] as const),
  ) as PolicyServerObjects;
}

function sourcesConfigMap(server: PolicyServerObject, { namespace }: PolicyServerSettings): JsonObject | undefined {
  const sources = moduleSources(server);
  const name = server.metadata.name ?? '';
  return sources === undefined
    ? undefined
    : {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: policyServerObjectName(name), namespace, labels: policyServerLabels(name) },
        data: { [SOURCES_FILE]: sources },
      };
}

// Whether the policies that a Policy has as templates can be evaluated.
import type { Cluster } from '../cluster/index.ts';
import type { GraphPolicy } from '../governance/index.ts';
import {
  CERTIFICATE_POLICIES,
  type Condition,
  CONFIGURATION_POLICIES,
  findCondition,
  type KubernetesObject,
  READY,
  type ResourceType,
} from '../resources/index.ts';
import { type Read, readObject } from './read.ts';

/** The condition `Ready` of a template: it is about the evaluation, not about compliance. */
export interface TemplateReadiness {
  readonly template: string;
  /** `absent` where there is no object, or no status yet. */
  readonly ready: Read<Condition>;
}

interface Evaluated extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

const KINDS: readonly Omit<ResourceType<Evaluated>, '_object'>[] = [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES];

/** Reads the templates of a policy that are policies themselves. @throws ApiError, ClusterError */
export async function templateReadiness(
  cluster: Pick<Cluster, 'get'>,
  { templates }: Pick<GraphPolicy, 'templates'>,
  namespace: string,
): Promise<readonly TemplateReadiness[]> {
  const readiness = templates.map(async ({ kind, name }): Promise<readonly TemplateReadiness[]> => {
    const type = KINDS.find((one) => one.kind === kind);
    if (type === undefined) {
      return [];
    }
    const read = await readObject<Evaluated>(cluster, type, { namespace, name });
    const ready = typeof read === 'object' ? (findCondition(read.status?.conditions, READY) ?? 'absent') : read;
    return [{ template: name, ready }];
  });
  return (await Promise.all(readiness)).flat();
}

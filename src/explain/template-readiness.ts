// Whether the policies that a Policy has as templates can be evaluated.
import type { Cluster } from '../cluster/index.ts';
import type { GraphPolicy } from '../governance/index.ts';
import {
  CERTIFICATE_POLICIES,
  type Condition,
  CONFIGURATION_POLICIES,
  findCondition,
  type KubernetesObject,
  type ObjectKey,
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

type EvaluatedKind = Omit<ResourceType<Evaluated>, '_object'>;

const KINDS: readonly EvaluatedKind[] = [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES];

/** Reads those templates that are policies themselves, one after the other: a Policy may have many. @throws ApiError, ClusterError */
export async function templateReadiness(
  cluster: Pick<Cluster, 'get'>,
  templates: GraphPolicy['templates'],
  namespace: string,
): Promise<readonly TemplateReadiness[]> {
  const found: TemplateReadiness[] = [];
  for (const { kind, name } of templates) {
    const type = KINDS.find((one) => one.kind === kind);
    if (type !== undefined) {
      found.push({ template: name, ready: await readinessOf(cluster, type, { namespace, name }) });
    }
  }
  return found;
}

async function readinessOf(
  cluster: Pick<Cluster, 'get'>,
  type: EvaluatedKind,
  key: ObjectKey,
): Promise<Read<Condition>> {
  const read = await readObject<Evaluated>(cluster, type, key);
  return typeof read === 'object' ? (findCondition(read.status?.conditions, READY) ?? 'absent') : read;
}

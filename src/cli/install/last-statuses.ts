// The last statuses of what stays after an uninstallation: nothing that is shown as enforced or known is not.
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster, listAll, unlessGone } from '../../cluster/index.ts';
import { uninstalledGovernanceStatus } from '../../governance/index.ts';
import { uninstalledPolicyStatus, uninstalledServerStatus } from '../../lifecycle/index.ts';
import {
  type AdmissionPolicyObject,
  GOVERNANCE_KINDS,
  groupResourceOf,
  type JsonObject,
  keyOf,
  type KubernetesObject,
  POLICY_KINDS,
  POLICY_SERVERS,
  type PolicyServerObject,
  type ResourceType,
} from '../../resources/index.ts';
import { oneLine } from '../table.ts';

/** Writes at once. */
const CONCURRENT_WRITES = 16;

/** The last status of an object; undefined where Portcullis never wrote one. */
type LastStatus = (object: KubernetesObject, now: number) => object | undefined;

export interface LastStatusOptions {
  readonly isDryRun: boolean;
  /** Whether governance policies are those of another product. */
  readonly isGovernedElsewhere: boolean;
}

/** What could be written, and why not everything. */
export interface LastStatusResult {
  readonly written: number;
  /** One line for each kind whose statuses are what they were. */
  readonly problems: readonly string[];
}

// The schemas of the kinds have validated the objects.
const ADMISSION: readonly (readonly [ResourceType, LastStatus])[] = [
  ...POLICY_KINDS.map((type) => {
    const last: LastStatus = (object, now) => uninstalledPolicyStatus(object as AdmissionPolicyObject, now);
    return [type, last] as const;
  }),
  [POLICY_SERVERS, (object, now) => uninstalledServerStatus(object as PolicyServerObject, now)],
];

/** Writes the last statuses that are not written yet. A user without the rights can still uninstall. @throws ClusterError */
export async function writeLastStatuses(
  cluster: Cluster,
  { isDryRun, isGovernedElsewhere }: LastStatusOptions,
): Promise<LastStatusResult> {
  const governance = GOVERNANCE_KINDS.map((type) => [type, uninstalledGovernanceStatus] as const);
  const problems: string[] = [];
  let written = 0;
  for (const [type, last] of [...ADMISSION, ...(isGovernedElsewhere ? [] : governance)]) {
    const failed = new Map<string, number>();
    written += await writeAll(cluster, type, last, isDryRun, (error) =>
      failed.set(error, (failed.get(error) ?? 0) + 1),
    );
    problems.push(...[...failed].map(([error, count]) => `${count} × ${groupResourceOf(type)}: ${error}`));
  }
  return { written, problems };
}

async function writeAll(
  cluster: Cluster,
  type: ResourceType,
  last: LastStatus,
  dryRun: boolean,
  onError: (text: string) => void,
): Promise<number> {
  const now = Date.now();
  const objects = await listed(cluster, type, onError);
  const wanted = objects.flatMap((object) => {
    const status = last(object, now);
    return status === undefined || isDeepStrictEqual(status, object['status']) ? [] : [{ object, status }];
  });
  let written = 0;
  for (let first = 0; first < wanted.length; first += CONCURRENT_WRITES) {
    const some = wanted.slice(first, first + CONCURRENT_WRITES);
    const done = await Promise.all(
      some.map(async ({ object, status }) => {
        const body = { status: replacing(object['status'], status) };
        return await ifAllowed(
          cluster.patch(type, keyOf(object), { type: 'merge', body }, { subresource: 'status', dryRun }),
          onError,
        );
      }),
    );
    written += done.filter((one) => one !== undefined).length;
  }
  return written;
}

async function listed(
  cluster: Cluster,
  type: ResourceType,
  onError: (text: string) => void,
): Promise<readonly KubernetesObject[]> {
  return (await ifAllowed(listAll<KubernetesObject>(cluster, type, {}), onError))?.items ?? [];
}

/** The result; undefined when the object or kind is gone, or the API server refuses it. @throws ClusterError */
async function ifAllowed<T>(request: Promise<T>, onError: (text: string) => void): Promise<T | undefined> {
  try {
    return await unlessGone(request);
  } catch (error) {
    if (!(error instanceof ApiError)) {
      throw error;
    }
    // Without the name of the object, so that all refusals of a kind are one.
    onError(error.code === 403 ? 'you may not list them, or not patch their status' : oneLine(error.reason));
    return undefined;
  }
}

/** A merge patch that makes the one status of the other: null removes a field. */
function replacing(before: unknown, after: object): JsonObject {
  const removed = Object.keys(before as object).filter((field) => !Object.hasOwn(after, field));
  return { ...Object.fromEntries(removed.map((field) => [field, null])), ...(after as JsonObject) };
}

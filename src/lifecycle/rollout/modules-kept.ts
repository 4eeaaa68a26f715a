// Whether the modules of the revision that answers would survive the loss of processes, by what these say that they have.
import { isDigest } from '../../modules/index.ts';
import {
  type Condition,
  type CopiesStatus,
  MODULES_KEPT,
  removeCondition,
  setCondition,
} from '../../resources/index.ts';
import { isLoadedOn, lastGoodRevision, servingRevision } from '../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './admission-rollout-view.ts';

/** Reasons of the condition. Documented in docs/lifecycle.md. */
export const KEPT_REASONS = {
  /** Policy servers have them on a disk that outlives all pods. */
  durable: 'DurableCache',
  /** Enough processes have them: at least one controller, and three together. */
  copied: 'Copied',
  /** Enough processes, but all on one node, which takes them along. */
  oneNode: 'OneNode',
  /** Fewer processes have them. */
  tooFew: 'TooFewCopies',
  /** The same, because controllers have no room. */
  noRoom: 'NoRoom',
  /** No process says that it has them. */
  notReported: 'NotReported',
} as const;

/** Processes that have the modules, so that two are left after the loss of any one. */
const ENOUGH_COPIES = 3;
const END_IT = 'a moduleCache of the PolicyServer on a persistentVolumeClaim or hostPath ends that';

/** The revision whose modules must not be lost: the one that serves, or did last. */
export function keptRevision(view: Pick<AdmissionRolloutView, 'revisions'>): AdmissionRevision | undefined {
  return servingRevision(view) ?? lastGoodRevision(view);
}

/** The field and the condition of a status; absent without modules. Before controllers have answered, both stay as they were. */
export function modulesKept(
  view: AdmissionRolloutView,
  before: { readonly copies?: CopiesStatus | undefined },
  conditions: readonly Condition[],
  now: number,
): { readonly copies?: CopiesStatus; readonly conditions: readonly Condition[] } {
  const serving = keptRevision(view);
  if (serving === undefined || !serving.modules.some(({ digest }) => isDigest(digest))) {
    return { conditions: removeCondition(conditions, MODULES_KEPT) };
  }
  const { copies: facts, replicas = [], generation } = view;
  if (facts === undefined) {
    return { ...(before.copies === undefined ? {} : { copies: before.copies }), conditions };
  }
  const { controllers, isDurable, isRefused } = facts;
  const holding = replicas.filter(
    (replica) => isLoadedOn(replica, serving) && replica.revisions.get(serving.number)?.isUncached !== true,
  );
  const nodes = countNodes([...holding.map(({ nodeName }) => nodeName), ...(facts.nodes ?? [])]);
  const copies = {
    servers: holding.length,
    controllers,
    ...(nodes === undefined ? {} : { nodes }),
    ...(isDurable === undefined ? {} : { durable: isDurable }),
  };
  const condition = { ...conditionOf(copies, isRefused), type: MODULES_KEPT, observedGeneration: generation };
  return { copies, conditions: setCondition(conditions, condition, now) };
}

/** Undefined where the node of a process is not known. */
function countNodes(names: readonly (string | undefined)[]): number | undefined {
  return names.length === 0 || names.includes(undefined) ? undefined : new Set(names).size;
}

function conditionOf(
  { servers, controllers, nodes, durable = false }: CopiesStatus,
  isRefused: boolean,
): Pick<Condition, 'status' | 'reason' | 'message'> {
  const where = nodes === undefined ? '' : ` on ${counted(nodes, 'node')}`;
  const places = `${counted(servers, 'policy server')} and ${counted(controllers, 'controller')}${where} have its modules`;
  if (servers + controllers === 0) {
    return { status: 'Unknown', reason: KEPT_REASONS.notReported, message: 'no process reports to have its modules' };
  }
  if (durable && servers > 0) {
    const message = `${places}, and the module cache of policy servers outlives their pods`;
    return { status: 'True', reason: KEPT_REASONS.durable, message };
  }
  const isEnough = controllers > 0 && servers + controllers >= ENOUGH_COPIES;
  if (isEnough && nodes !== 1) {
    return { status: 'True', reason: KEPT_REASONS.copied, message: places };
  }
  const message = `${places}: when these are lost while the source is down, nothing can evaluate the policy; ${END_IT}`;
  if (isEnough) {
    return { status: 'False', reason: KEPT_REASONS.oneNode, message };
  }
  return isRefused
    ? {
        status: 'False',
        reason: KEPT_REASONS.noRoom,
        message: `a controller has no room for its modules (value controller.moduleCopiesSize); ${message}`,
      }
    : { status: 'False', reason: KEPT_REASONS.tooFew, message };
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

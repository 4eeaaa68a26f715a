import { ageOf } from '../../../resources/index.ts';
import { age, hasCondition, nameOf } from './table-cells.ts';
import type { Cells, PrintedCondition, PrintedContainer } from './table-cells.ts';

interface Terminated {
  readonly exitCode?: number;
  readonly signal?: number;
  readonly reason?: string;
  readonly finishedAt?: string | null;
}

interface ContainerStatus {
  readonly name?: string;
  readonly ready?: boolean;
  readonly started?: boolean;
  readonly restartCount?: number;
  readonly state?: {
    readonly running?: object;
    readonly waiting?: { readonly reason?: string };
    readonly terminated?: Terminated;
  };
  readonly lastState?: { readonly terminated?: Terminated };
}

interface Pod {
  readonly metadata: { readonly deletionTimestamp?: string };
  readonly spec?: {
    readonly containers?: readonly PrintedContainer[] | null;
    readonly initContainers?: readonly PrintedContainer[];
    readonly nodeName?: string;
    readonly readinessGates?: readonly { readonly conditionType?: string }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly conditions?: readonly PrintedCondition[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly podIPs?: readonly { readonly ip?: string }[];
    readonly nominatedNodeName?: string;
  };
}

/** Counts the restarts of containers, and finds the time of the last one. */
class Restarts {
  count = 0;
  #last: string | undefined;

  add({ restartCount = 0, lastState }: ContainerStatus): void {
    this.count += restartCount;
    const finished = lastState?.terminated?.finishedAt;
    if (typeof finished === 'string' && (this.#last === undefined || Date.parse(finished) > Date.parse(this.#last))) {
      this.#last = finished;
    }
  }

  text(now: number): string {
    return this.count === 0 || this.#last === undefined
      ? `${this.count}`
      : `${this.count} (${ageOf(this.#last, now)} ago)`;
  }
}

/** What the columns READY, STATUS and RESTARTS show. */
interface Progress {
  /** The STATUS. */
  readonly reason: string;
  readonly ready: number;
  readonly restarts: Restarts;
}

const isSidecar = (container: PrintedContainer | undefined): boolean => container?.restartPolicy === 'Always';

export const podCells: Cells = (object, now) => {
  const pod = object as Pod;
  const { spec = {}, status = {} } = pod;
  const { reason, ready, restarts } = progressOf(pod);
  const total = (spec.containers?.length ?? 0) + (spec.initContainers?.filter(isSidecar).length ?? 0);
  return [
    nameOf(object),
    `${ready}/${total}`,
    reason,
    restarts.text(now),
    age(object, now),
    status.podIPs?.[0]?.ip || '<none>',
    spec.nodeName || '<none>',
    status.nominatedNodeName || '<none>',
    readinessGates(pod),
  ];
};

/** The state of a pod. Its init containers come first, then its containers; a deletion overrides both. */
function progressOf(pod: Pod): Progress {
  const { status = {}, metadata } = pod;
  const gated = status.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated');
  const start = gated === true ? 'SchedulingGated' : status.reason || (status.phase ?? '');
  const init = initProgress(pod, start);
  const progress =
    init.waiting && !hasCondition(status.conditions, 'Initialized') ? init : containerProgress(pod, init);
  if (metadata.deletionTimestamp === undefined) {
    return progress;
  }
  if (status.reason === 'NodeLost') {
    return { ...progress, reason: 'Unknown' };
  }
  const isOver = status.phase === 'Failed' || status.phase === 'Succeeded';
  return isOver ? progress : { ...progress, reason: 'Terminating' };
}

interface InitProgress extends Progress {
  readonly waiting: boolean;
  /** Restarts of sidecars (restartable init containers). */
  readonly sidecarRestarts: Restarts;
}

function initProgress({ spec = {}, status = {} }: Pod, start: string): InitProgress {
  const restarts = new Restarts();
  const sidecarRestarts = new Restarts();
  const containers = new Map(spec.initContainers?.map((container) => [container.name, container]));
  let ready = 0;
  for (const [index, container] of (status.initContainerStatuses ?? []).entries()) {
    const sidecar = isSidecar(containers.get(container.name));
    restarts.add(container);
    if (sidecar) {
      sidecarRestarts.add(container);
    }
    if (container.state?.terminated?.exitCode === 0) {
      continue;
    }
    if (sidecar && container.started === true) {
      ready += container.ready === true ? 1 : 0;
      continue;
    }
    const why = initReason(container, `${index}/${spec.initContainers?.length ?? 0}`);
    return { reason: `Init:${why}`, ready, restarts, sidecarRestarts, waiting: true };
  }
  return { reason: start, ready, restarts, sidecarRestarts, waiting: false };
}

function initReason({ state }: ContainerStatus, position: string): string {
  if (state?.terminated !== undefined) {
    return terminatedReason(state.terminated);
  }
  const reason = state?.waiting?.reason;
  return reason === undefined || reason === '' || reason === 'PodInitializing' ? position : reason;
}

function terminatedReason({ reason, signal = 0, exitCode = 0 }: Terminated): string {
  return reason || (signal === 0 ? `ExitCode:${exitCode}` : `Signal:${signal}`);
}

function containerProgress({ status = {} }: Pod, init: InitProgress): Progress {
  const restarts = init.sidecarRestarts;
  let { reason, ready } = init;
  let hasRunning = false;
  for (const container of (status.containerStatuses ?? []).toReversed()) {
    const { waiting, terminated, running } = container.state ?? {};
    restarts.add(container);
    if (waiting?.reason !== undefined && waiting.reason !== '') {
      reason = waiting.reason;
    } else if (terminated !== undefined) {
      reason = terminatedReason(terminated);
    } else if (container.ready === true && running !== undefined) {
      hasRunning = true;
      ready += 1;
    }
  }
  if (reason === 'Completed' && hasRunning) {
    reason = hasCondition(status.conditions, 'Ready') ? 'Running' : 'NotReady';
  }
  return { reason, ready, restarts };
}

function readinessGates({ spec, status }: Pod): string {
  const gates = spec?.readinessGates ?? [];
  const isTrue = (gate: string | undefined): boolean =>
    status?.conditions?.find(({ type }) => type === gate)?.status === 'True';
  return gates.length === 0
    ? '<none>'
    : `${gates.filter(({ conditionType }) => isTrue(conditionType)).length}/${gates.length}`;
}

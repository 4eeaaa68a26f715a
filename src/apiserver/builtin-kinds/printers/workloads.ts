import { humanDuration } from '../../../resources/index.ts';
import { age, containerCells, hasCondition, labelsText, nameOf, selectorText } from './table-cells.ts';
import type { Cells, PrintedCondition, PrintedTemplate } from './table-cells.ts';

interface Workload {
  readonly spec?: {
    readonly replicas?: number;
    readonly selector?: unknown;
    readonly template?: PrintedTemplate;
  };
  readonly status?: Readonly<Record<string, number>>;
}

interface Job {
  readonly metadata: { readonly deletionTimestamp?: string };
  readonly spec?: {
    readonly completions?: number;
    readonly parallelism?: number;
    readonly selector?: unknown;
    readonly template?: PrintedTemplate;
  };
  readonly status?: {
    readonly succeeded?: number;
    readonly startTime?: string;
    readonly completionTime?: string;
    readonly conditions?: readonly PrintedCondition[];
  };
}

interface CronJob {
  readonly spec?: {
    readonly schedule?: string;
    readonly timeZone?: string;
    readonly suspend?: boolean;
    readonly jobTemplate?: { readonly spec?: NonNullable<Job['spec']> };
  };
  readonly status?: { readonly active?: readonly unknown[]; readonly lastScheduleTime?: string };
}

export const deploymentCells: Cells = (object, now) => {
  const { spec, status } = object as Workload;
  return [
    nameOf(object),
    `${status?.['readyReplicas'] ?? 0}/${spec?.replicas ?? 0}`,
    status?.['updatedReplicas'] ?? 0,
    status?.['availableReplicas'] ?? 0,
    age(object, now),
    ...containerCells(spec?.template),
    selectorText(spec?.selector, '', '<invalid>'),
  ];
};

export const replicaSetCells: Cells = (object, now) => {
  const { spec } = object as Workload;
  return [...replicasCells(object, now), selectorText(spec?.selector)];
};

export const replicationControllerCells: Cells = (object, now) => {
  const { spec } = object as Workload;
  return [...replicasCells(object, now), labelsText(spec?.selector as Record<string, string> | undefined)];
};

const replicasCells: Cells = (object, now) => {
  const { spec, status } = object as Workload;
  return [
    nameOf(object),
    spec?.replicas ?? 0,
    status?.['replicas'] ?? 0,
    status?.['readyReplicas'] ?? 0,
    age(object, now),
    ...containerCells(spec?.template),
  ];
};

export const statefulSetCells: Cells = (object, now) => {
  const { spec, status } = object as Workload;
  return [
    nameOf(object),
    `${status?.['readyReplicas'] ?? 0}/${spec?.replicas ?? 0}`,
    age(object, now),
    ...containerCells(spec?.template),
  ];
};

export const daemonSetCells: Cells = (object, now) => {
  const { spec, status } = object as Workload;
  return [
    nameOf(object),
    status?.['desiredNumberScheduled'] ?? 0,
    status?.['currentNumberScheduled'] ?? 0,
    status?.['numberReady'] ?? 0,
    status?.['updatedNumberScheduled'] ?? 0,
    status?.['numberAvailable'] ?? 0,
    labelsText(spec?.template?.spec?.nodeSelector),
    age(object, now),
    ...containerCells(spec?.template),
    selectorText(spec?.selector),
  ];
};

export const jobCells: Cells = (object, now) => {
  const job = object as Job;
  return [
    nameOf(object),
    jobStatus(job),
    jobCompletions(job),
    jobDuration(job, now),
    age(object, now),
    ...containerCells(job.spec?.template),
    selectorText(job.spec?.selector),
  ];
};

/** Conditions of a Job in order of precedence, with the text of the column. */
const JOB_STATES: readonly (readonly [condition: string, state: string])[] = [
  ['Complete', 'Complete'],
  ['Failed', 'Failed'],
  ['', 'Terminating'],
  ['Suspended', 'Suspended'],
  ['FailureTarget', 'FailureTarget'],
  ['SuccessCriteriaMet', 'SuccessCriteriaMet'],
];

function jobStatus({ metadata, status }: Job): string {
  const state = JOB_STATES.find(([condition]) =>
    condition === '' ? metadata.deletionTimestamp !== undefined : hasCondition(status?.conditions, condition),
  );
  return state?.[1] ?? 'Running';
}

function jobCompletions({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec?.completions !== undefined) {
    return `${succeeded}/${spec.completions}`;
  }
  const parallelism = spec?.parallelism ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDuration({ status }: Job, now: number): string {
  if (status?.startTime === undefined) {
    return '';
  }
  const end = status.completionTime === undefined ? now : Date.parse(status.completionTime);
  return humanDuration(end - Date.parse(status.startTime));
}

export const cronJobCells: Cells = (object, now) => {
  const { spec, status } = object as CronJob;
  const last = status?.lastScheduleTime;
  return [
    nameOf(object),
    spec?.schedule ?? '',
    spec?.timeZone ?? '<none>',
    suspendText(spec?.suspend),
    status?.active?.length ?? 0,
    last === undefined ? '<none>' : humanDuration(now - Date.parse(last)),
    age(object, now),
    ...containerCells(spec?.jobTemplate?.spec?.template),
    selectorText(spec?.jobTemplate?.spec?.selector),
  ];
};

function suspendText(suspend: boolean | undefined): string {
  if (suspend === undefined) {
    return '<unset>';
  }
  return suspend ? 'True' : 'False';
}

interface PodDisruptionBudget {
  readonly spec?: { readonly minAvailable?: number | string; readonly maxUnavailable?: number | string };
  readonly status?: { readonly disruptionsAllowed?: number };
}

export const podDisruptionBudgetCells: Cells = (object, now) => {
  const { spec, status } = object as PodDisruptionBudget;
  return [
    nameOf(object),
    String(spec?.minAvailable ?? 'N/A'),
    String(spec?.maxUnavailable ?? 'N/A'),
    status?.disruptionsAllowed ?? 0,
    age(object, now),
  ];
};

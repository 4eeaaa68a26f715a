// `portcullis rollout undo`: asks the controller to write an earlier revision back, and tells what became of that.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Command, Option } from 'commander';
import { ApiError } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  type KubernetesObject,
  type PolicyRevision,
  ROLLBACK_FAILED,
} from '../../resources/index.ts';
import { EVENTS } from '../../runtime/index.ts';
import { durationMs } from '../cluster/duration.ts';
import { waitFor } from '../cluster/wait-for.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import { readableRevisions, revisionOf, snapshotOf } from './revision-history.ts';
import {
  annotate,
  goneError,
  pinOf,
  revisionNumber,
  rolloutCommandOf,
  type RolloutFlags,
  type RolloutTarget,
  withTarget,
} from './rollout-target.ts';

interface UndoFlags extends RolloutFlags {
  readonly toRevision?: number;
  readonly dryRun?: true;
  readonly timeout: string;
}

/** How often that event is looked for, and the time between two looks. Milliseconds. */
const EVENT_LOOKS = 10;
const EVENT_PAUSE_MS = 200;

interface EventObject extends KubernetesObject {
  readonly count?: number;
  readonly message?: string;
}

export function undoCommand(): Command {
  return rolloutCommandOf('undo', 'write an earlier revision of a policy back, its modules pinned by digest')
    .addOption(
      new Option('--to-revision <number>', 'which one (default: the last one that served before)').argParser(
        revisionNumber,
      ),
    )
    .option('--dry-run', 'change nothing, only check that it could be done')
    .option('--timeout <duration>', 'how long to wait for the controller', '10s')
    .addHelpText(
      'after',
      `
Examples:
  portcullis rollout undo cap/pinned-images
  portcullis rollout undo cap/pinned-images --to-revision 2

It is the same as: kubectl annotate cap pinned-images ${ANNOTATIONS.rollbackTo}=2   (or =previous)`,
    )
    .action(undo);
}

async function undo(args: readonly string[], flags: UndoFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  await withTarget(args, flags, async (target) => {
    if (flags.toRevision !== undefined || flags.dryRun === true) {
      const revisions = await readableRevisions(target);
      if (revisions !== undefined) {
        requireTarget(target, revisions, flags.toRevision);
      }
    }
    const wanted = flags.toRevision === undefined ? 'previous' : String(flags.toRevision);
    const what = flags.toRevision === undefined ? 'the revision before' : `revision ${flags.toRevision}`;
    const failures = await rollbackFailures(target);
    const before = await annotate(target, 'rollbackTo', wanted, flags.dryRun === true);
    if (flags.dryRun === true) {
      process.stdout.write(`${target.name} would be rolled back to ${what} (dry run)\n`);
      return;
    }
    const after = await taken(target, timeoutMs, flags.timeout);
    if ((after.metadata.generation ?? 0) === (before.metadata.generation ?? 0)) {
      await explainNothing(target, what, failures);
      return;
    }
    process.stdout.write(`${target.name} rolled back to ${what}\n`);
    const pin = pinOf(after);
    if (pin !== undefined) {
      process.stderr.write(`note: it is pinned to revision ${oneLine(pin, 20)}, which serves until it is unpinned\n`);
    }
  });
}

/** @throws CliError when there is no revision to go back to; the controller would say so as well */
function requireTarget(target: RolloutTarget, revisions: readonly PolicyRevision[], wanted: number | undefined): void {
  if (wanted !== undefined) {
    revisionOf(target, revisions, wanted);
  } else if (
    revisions.every((one) => (one.status?.order ?? 0) === 0 || isDeepStrictEqual(snapshotOf(one), target.policy.spec))
  ) {
    throw new CliError(`no other revision of ${target.name} has served`);
  }
}

/** Waits until the controller has taken the annotation off: it has done by then what it could. */
async function taken(target: RolloutTarget, timeoutMs: number, timeout: string): Promise<AdmissionPolicyObject> {
  const { cluster, type, key, name } = target;
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const after = await new Progress().during(`${name}: waiting for the controller`, () =>
      waitFor(
        cluster,
        type,
        key,
        (object) => object?.metadata.annotations?.[ANNOTATIONS.rollbackTo] === undefined,
        deadline,
      ),
    );
    if (after === undefined) {
      throw goneError(target);
    }
    return after as AdmissionPolicyObject;
  } catch (error) {
    if (deadline.aborted) {
      throw new CliError(`${name}: the controller has not taken the rollback after ${timeout}`, {
        hint: `It will when it runs, unless its annotation ${ANNOTATIONS.rollbackTo} is removed.`,
        cause: error,
      });
    }
    throw error;
  }
}

/** Nothing was written: there was nothing to write, or the controller says in an event why it could not. */
async function explainNothing(target: RolloutTarget, what: string, before: Failures | undefined): Promise<void> {
  if (before === undefined) {
    throw new CliError(`${target.name} was left as it is by the controller`, {
      hint: `Either its spec is that of ${what} already, or that is not kept: an event of the policy says so to those who may read it.`,
    });
  }
  const failure = await newFailure(target, before);
  if (failure !== undefined) {
    throw new CliError(`${target.name} was not rolled back: ${oneLine(failure)}`);
  }
  process.stdout.write(`${target.name} is unchanged: its spec is that of ${what} already\n`);
}

/** The message of an event that was not there before; events are written a moment later than what they are about. */
async function newFailure(target: RolloutTarget, before: Failures): Promise<string | undefined> {
  for (let looks = 0; looks < EVENT_LOOKS; looks += 1) {
    await sleep(looks === 0 ? 0 : EVENT_PAUSE_MS);
    for (const [name, { count, message }] of (await rollbackFailures(target)) ?? []) {
      if (count > (before.get(name)?.count ?? 0)) {
        return message;
      }
    }
  }
  return undefined;
}

/** Events that tell of rollbacks that failed, by name. */
type Failures = ReadonlyMap<string, { readonly count: number; readonly message: string }>;

/** Those of the policy; undefined for somebody who may not read them. */
async function rollbackFailures({ cluster, policy, key }: RolloutTarget): Promise<Failures | undefined> {
  const involved = `involvedObject.uid=${policy.metadata.uid ?? ''}`;
  try {
    const { items } = await cluster.list<EventObject>(EVENTS, {
      // Events about objects without a namespace are in this one.
      namespace: key.namespace ?? 'default',
      fieldSelector: `${involved},reason=${ROLLBACK_FAILED}`,
    });
    return new Map(
      items.map(({ metadata, count = 1, message = '' }) => [metadata.name ?? '', { count, message }] as const),
    );
  } catch (error) {
    if (error instanceof ApiError) {
      return undefined;
    }
    throw error;
  }
}

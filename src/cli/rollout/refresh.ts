// `portcullis rollout refresh`: asks the controller to resolve the modules of a policy again, and prints what has changed.
import type { Command } from 'commander';
import { type AdmissionPolicyObject, ANNOTATIONS } from '../../resources/index.ts';
import { durationMs } from '../cluster/duration.ts';
import { waitFor } from '../cluster/wait-for.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import {
  admissionTarget,
  annotate,
  goneError,
  pinOf,
  rolloutCommandOf,
  type RolloutFlags,
  type RolloutTarget,
  withTarget,
} from './rollout-target.ts';

interface RefreshFlags extends RolloutFlags {
  readonly timeout: string;
}

export function refreshCommand(): Command {
  return rolloutCommandOf('refresh', 'resolve the modules of a policy again: a new revision, if a tag has moved')
    .option('--timeout <duration>', 'how long to wait for the result', '2m')
    .addHelpText(
      'after',
      `
Example:
  portcullis rollout refresh cap/pinned-images

It is the same as: kubectl annotate --overwrite cap pinned-images ${ANNOTATIONS.refresh}="$(date)"`,
    )
    .action(refresh);
}

async function refresh(args: readonly string[], flags: RefreshFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  await withTarget(args, flags, async (found) => {
    const target = admissionTarget(
      found,
      'It has no modules. Its templates are resolved again when what they look up changes.',
    );
    const value = new Date().toISOString();
    await annotate(target, 'refresh', value);
    const policy = await refreshed(target, value, timeoutMs, flags.timeout);
    const { result, message = '' } = policy.status?.refreshed ?? {};
    const text = `${target.name}: ${oneLine(message, MAX_MESSAGE)}`;
    const pin = pinOf(policy);
    if (result === 'Unresolved' && pin === undefined) {
      throw new CliError(`${text}: ${oneLine(policy.status?.message ?? '', MAX_MESSAGE)}`, {
        hint: '`portcullis rollout status` shows the progress; `portcullis rollout undo` restores the earlier modules.',
      });
    }
    process.stdout.write(`${text}\n`);
    if (result !== 'Unchanged' && pin !== undefined) {
      process.stderr.write(`note: it is pinned to revision ${oneLine(pin, 20)}, which serves until it is unpinned\n`);
    }
  });
}

/** Five modules with two digests each. */
const MAX_MESSAGE = 2_000;

/** Waits until the status has the result of this refresh. @throws CliError after the timeout, or when the policy is deleted */
async function refreshed(
  target: RolloutTarget,
  value: string,
  timeoutMs: number,
  timeout: string,
): Promise<AdmissionPolicyObject> {
  const { cluster, type, key, name } = target;
  const deadline = AbortSignal.timeout(timeoutMs);
  const isHandled = (object: unknown): boolean =>
    object === undefined || (object as AdmissionPolicyObject).status?.refreshed?.value === value;
  try {
    const policy = await new Progress().during(`${name}: resolving its modules`, () =>
      waitFor(cluster, type, key, isHandled, deadline),
    );
    if (policy === undefined) {
      throw goneError(target);
    }
    return policy as AdmissionPolicyObject;
  } catch (error) {
    if (deadline.aborted) {
      throw new CliError(`${name}: the refresh has no result after ${timeout}`, {
        hint: `It will have one when its controller and a replica run, unless the annotation ${ANNOTATIONS.refresh} is changed.`,
        cause: error,
      });
    }
    throw error;
  }
}

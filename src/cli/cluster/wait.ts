// `portcullis wait`: waits until objects have a condition, a value, or are gone.
import { Command } from 'commander';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import {
  isJsonObject,
  type KubernetesObject,
  type ObjectKey,
  type ResourceType,
  valueAt,
} from '../../resources/index.ts';
import { CliError, usageError } from '../errors.ts';
import { addClusterFlags, type ClusterFlags, connect } from './cluster-flags.ts';
import { durationMs } from './duration.ts';
import { jsonPathGoal } from './json-path-goal.ts';
import { keyIn, objectName, selectResources } from './resource-arguments.ts';
import { type WaitGoal, waitFor, waitUntilGone } from './wait-for.ts';

interface WaitFlags extends ClusterFlags {
  readonly for: string;
  readonly timeout: string;
}

export function waitCommand(): Command {
  return addClusterFlags(
    new Command('wait')
      .description('wait until objects have a condition or a value, or are deleted')
      .argument('<resources...>', 'TYPE NAME…, or TYPE/NAME…')
      .requiredOption('--for <what>', 'condition=NAME[=VALUE], jsonpath={.status.phase}[=VALUE], create or delete')
      .option('--timeout <duration>', 'timeout, such as 30s or 5m', '30s'),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis wait cap/pinned-images --for=condition=PolicyActive
  portcullis wait cap pinned-images --for=jsonpath=.status.phase=Degraded --timeout 10s
  portcullis wait pod/web -n shop --for=delete`,
    )
    .action(wait);
}

async function wait(resources: readonly string[], flags: WaitFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  const goal = flags.for === 'delete' ? undefined : parseGoal(flags.for);
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  const deadline = AbortSignal.timeout(timeoutMs);
  for (const { type, names } of await selectResources(cluster, resources, { namespace })) {
    if (names.length === 0) {
      throw usageError(`${type.resource}: expected the names of the objects to wait for`);
    }
    for (const name of names) {
      const key = keyIn(type, namespace, name);
      const shown = objectName(type, name);
      try {
        if (goal !== undefined && flags.for !== 'create') {
          await requireObject(cluster, type, key, deadline);
        }
        await (goal === undefined
          ? waitUntilGone(cluster, type, key, deadline)
          : waitFor(cluster, type, key, goal, deadline));
      } catch (error) {
        if (deadline.aborted) {
          throw new CliError(`timed out after ${flags.timeout} waiting for ${flags.for} on ${shown}`, { cause: error });
        }
        throw error;
      }
      process.stdout.write(
        `${shown} ${goal === undefined ? 'deleted' : flags.for === 'create' ? 'created' : 'condition met'}\n`,
      );
    }
  }
}

/** Ends the command at once when there is no such object, as kubectl does. @throws ApiError */
async function requireObject(cluster: Cluster, type: ResourceType, key: ObjectKey, signal: AbortSignal): Promise<void> {
  try {
    await cluster.get(type, key, { signal });
  } catch (error) {
    // Users who may only list and watch can wait too.
    if (!(error instanceof ApiError) || error.code !== 403) {
      throw error;
    }
  }
}

/** @throws CliError */
function parseGoal(text: string): WaitGoal {
  if (text === 'create') {
    return (object) => object !== undefined;
  }
  const [form = '', ...rest] = text.split('=');
  if (form === 'condition' && rest[0] !== undefined && rest[0] !== '') {
    const [name, value = 'true'] = rest;
    return (object) => conditionOf(object, name)?.toLowerCase() === value.toLowerCase();
  }
  if (form === 'jsonpath') {
    return jsonPathGoal(rest.join('='));
  }
  throw usageError(
    `--for ${text}: expected condition=NAME, condition=NAME=VALUE, jsonpath=.path.to.field[=VALUE], create or delete`,
  );
}

function conditionOf(object: KubernetesObject | undefined, name: string): string | undefined {
  const conditions = valueAt(object, 'status', 'conditions');
  for (const condition of Array.isArray(conditions) ? conditions.filter(isJsonObject) : []) {
    const { type, status } = condition;
    if (typeof type === 'string' && typeof status === 'string' && type.toLowerCase() === name.toLowerCase()) {
      return status;
    }
  }
  return undefined;
}

// Flags for the admission request that is built around an object.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { describeValue, type JsonObject } from '../../engine/index.ts';
import { usageError } from '../errors.ts';
import { objectId, objectText } from '../manifest-objects.ts';
import {
  DEFAULT_USER,
  type Operation,
  OPERATIONS,
  type RequestDetails,
  type RequestObjects,
  type Scope,
} from './admission-request.ts';

export interface RequestFlags {
  readonly operation?: Operation;
  readonly old?: string;
  readonly user?: string;
  readonly group?: readonly string[];
  readonly namespace?: string;
  readonly subresource?: string;
  readonly resource?: string;
  readonly scope?: Scope;
}

/** A plural name, with version and group if they are not those of the object. */
export const RESOURCE_NAME = /^[a-z0-9-]+(?:\.v[a-z0-9]+(?:\.[a-z0-9.-]+)?)?$/;

const FLAGS = ['operation', 'old', 'user', 'group', 'namespace', 'subresource', 'resource', 'scope'] as const;

/** @param old what `--old` names */
export function addRequestFlags(command: Command, old: string): Command {
  return command
    .addOption(
      new Option('--operation <operation>', 'operation on the object (default: CREATE, with --old UPDATE)').choices(
        OPERATIONS,
      ),
    )
    .option('--old <file>', old)
    .option('--user <name>', 'user of the request (default: kubernetes-admin)')
    .addOption(new Option('--group <name>', 'group of the user; repeatable').argParser(collected))
    .option('--namespace <name>', 'namespace of the request and its object (default: that of the object, or default)')
    .option('--subresource <name>', 'subresource of the request, such as scale')
    .addOption(
      new Option('--resource <plural>', 'resource of a kind that is not known, such as widgets').argParser(resource),
    )
    .addOption(new Option('--scope <scope>', 'scope of a kind that is not known').choices(['Namespaced', 'Cluster']));
}

/** The flags that are given, as the user wrote them. */
export function givenRequestFlags(flags: RequestFlags): readonly string[] {
  return FLAGS.filter((name) => flags[name] !== undefined).map((name) => `--${name}`);
}

/** The fields of the request that flags set. */
export function requestDetails({
  operation,
  user,
  group,
  namespace,
  subresource,
  resource,
  scope,
}: RequestFlags): RequestDetails {
  const asUser = {
    ...(user === undefined ? { username: DEFAULT_USER.username } : { username: user }),
    ...(group === undefined ? {} : { groups: group }),
  };
  return {
    ...(operation === undefined ? {} : { operation }),
    ...(user === undefined && group === undefined ? {} : { user: asUser }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(subresource === undefined ? {} : { subresource }),
    ...(resource === undefined ? {} : { resource }),
    ...(scope === undefined ? {} : { scope }),
  };
}

/**
 * The objects of the request for an object: a DELETE is about the old one.
 * @param old the object before the change
 * @throws CliError when the operation does not have these objects
 */
export function requestObjects(
  object: JsonObject,
  old: JsonObject | undefined,
  operation: Operation | undefined,
): RequestObjects {
  if (operation === 'UPDATE' && old === undefined) {
    throw usageError('--operation UPDATE needs --old, the object before the change');
  }
  if (old !== undefined && operation !== undefined && operation !== 'UPDATE') {
    const why = operation === 'DELETE' ? 'its object is the deleted one' : 'there is no object before it';
    throw usageError(`--old cannot be used with --operation ${operation}: ${why}`);
  }
  if (old !== undefined && objectId(old) !== objectId(object)) {
    throw usageError(`--old is ${objectText(old)}: expected ${objectText(object)} before the change`);
  }
  return operation === 'DELETE' ? { oldObject: object } : { object, ...(old === undefined ? {} : { oldObject: old }) };
}

function resource(text: string): string {
  if (!RESOURCE_NAME.test(text)) {
    throw new InvalidArgumentError(
      `Expected a plural name such as widgets, or widgets.v1.example.com, got ${describeValue(text)}.`,
    );
  }
  return text;
}

/** The values of a flag that may be repeated. */
export function collected(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), value];
}

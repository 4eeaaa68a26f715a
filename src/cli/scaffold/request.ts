// `portcullis scaffold request`: the AdmissionReview of an API server for an object, with the flags of
// `kwctl scaffold admission-request`.
import { Command } from 'commander';
import { exactJson } from '../../values/index.ts';
import { usageError } from '../errors.ts';
import { readObject, requestForObject } from '../policy/request-document.ts';
import { addRequestFlags, type RequestFlags } from '../policy/request-flags.ts';
import { ServedKinds } from '../policy/served-kinds.ts';
import { Progress } from '../progress.ts';

interface ScaffoldRequestFlags extends RequestFlags {
  readonly object?: string;
  readonly oldObject?: string;
}

/** The files of the objects of a request. */
interface ObjectFiles {
  readonly object: string;
  /** The object before the change. */
  readonly old: string | undefined;
  readonly operation: RequestFlags['operation'];
}

export function requestCommand(): Command {
  const command = new Command('request')
    .alias('admission-request')
    .description('print the AdmissionReview of an API server for an object')
    .argument('[object]', 'file with the object, JSON or YAML; - for standard input')
    .option('--object <file>', 'the same')
    .option('--old-object <file>', 'the same as --old; alone, the object that is deleted');
  return addRequestFlags(command, 'file with the object before the change')
    .addHelpText(
      'after',
      `
Examples:
  portcullis scaffold request pod.yaml > request.json
  portcullis scaffold request pod.yaml --old before.yaml --user alice --group developers
  kubectl get pod web -o yaml | portcullis scaffold request - --operation DELETE`,
    )
    .action(scaffoldRequest);
}

async function scaffoldRequest(file: string | undefined, flags: ScaffoldRequestFlags): Promise<void> {
  const { object, old, operation } = filesOf(file, flags);
  if (object === '-' && old === '-') {
    throw usageError('the object and the one before cannot both come from standard input');
  }
  const [current, before] = await Promise.all([readObject(object), old === undefined ? undefined : readObject(old)]);
  const stated = operation === undefined ? flags : { ...flags, operation };
  const { review, notes } = requestForObject(current, before, stated, new ServedKinds([]));
  const progress = new Progress();
  notes.forEach((note) => progress.note(note));
  process.stdout.write(`${indentedJson(review)}\n`);
}

/** @throws CliError when an object is named twice, or none */
function filesOf(file: string | undefined, flags: ScaffoldRequestFlags): ObjectFiles {
  const object = file ?? flags.object;
  const old = flags.old ?? flags.oldObject;
  if (file !== undefined && flags.object !== undefined) {
    throw usageError(`expected one object, got ${file} and --object ${flags.object}`);
  }
  if (flags.old !== undefined && flags.oldObject !== undefined) {
    throw usageError('--old and --old-object are the same flag');
  }
  if (object !== undefined) {
    return { object, old, operation: flags.operation };
  }
  if (old === undefined || (flags.operation !== undefined && flags.operation !== 'DELETE')) {
    throw usageError('no object is named', 'Name a file with the object, or - for standard input.');
  }
  return { object: old, old: undefined, operation: 'DELETE' };
}

/** Indented, unless the value has integers that a number would round. */
function indentedJson(value: object): string {
  const exact = exactJson(value);
  try {
    return JSON.stringify(value, undefined, 2);
  } catch {
    return exact;
  }
}

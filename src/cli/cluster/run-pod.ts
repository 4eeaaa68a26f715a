// `portcullis run NAME --image=IMAGE`: creates a pod, as `kubectl run` does.
import { Command, Option } from 'commander';
import type { Cluster } from '../../cluster/index.ts';
import { applyMergePatch, type JsonObject, knownKind, PatchError } from '../../resources/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { isJsonObject } from '../../values/index.ts';
import { parseDocument } from '../document.ts';
import { dataText } from '../output.ts';
import { oneLine } from '../table.ts';
import { usageError } from '../errors.ts';
import { addClusterFlags, type ClusterFlags, connect } from './cluster-flags.ts';
import { type DryRunMode, dryRunOption, dryRunText } from './dry-run-flag.ts';
import { objectName } from './resource-arguments.ts';

interface RunPodFlags extends ClusterFlags {
  readonly image: string;
  readonly labels?: string;
  readonly overrides?: string;
  readonly dryRun: DryRunMode;
  readonly output?: 'json' | 'yaml' | 'name';
}

const PODS = knownKind('v1', 'Pod');

const POD = { apiVersion: 'v1', kind: 'Pod' } as const;

/** Has the name of the command that evaluates a request: `isPodRun` tells them apart. */
export function runPodCommand(): Command {
  return addClusterFlags(
    new Command('run')
      .description('create a pod, as kubectl run does')
      .argument('<name>', 'the name of the pod and its container')
      .requiredOption('--image <image>', 'the image of the container')
      .option('-l, --labels <labels>', 'labels, such as app=web,tier=front (default: run=NAME)')
      .option('--overrides <json>', 'fields that replace those of the pod, as a JSON merge patch')
      .addOption(dryRunOption())
      .addOption(new Option('-o, --output <format>', 'print the pod').choices(['json', 'yaml', 'name'])),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis run web --image=nginx:1.29
  portcullis run web --image=nginx --dry-run=server
  portcullis run web --image=nginx --dry-run=client -o yaml
  portcullis run web --image=nginx --overrides='{"spec":{"hostNetwork":true}}'`,
    )
    .action(runPod);
}

async function runPod(name: string, flags: RunPodFlags): Promise<void> {
  const pod = podOf(name, flags);
  if (flags.dryRun === 'client') {
    print(pod, flags);
    return;
  }
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  const placed = { ...pod, metadata: { ...pod.metadata, namespace } };
  print(await created(cluster, placed, flags.dryRun === 'server'), flags);
}

async function created(cluster: Cluster, pod: KubernetesObject, dryRun: boolean): Promise<KubernetesObject> {
  return await cluster.create(PODS, pod, {
    dryRun,
    onWarning: (text) => process.stderr.write(`Warning: ${oneLine(text)}\n`),
  });
}

/** @throws CliError */
function podOf(name: string, { image, labels, overrides }: RunPodFlags): KubernetesObject {
  const pod = {
    ...POD,
    metadata: { name, labels: labels === undefined ? { run: name } : labelsOf(labels) },
    spec: { containers: [{ name, image }] },
  };
  return overrides === undefined ? pod : overridden(pod, overrides);
}

/** The pod after a merge patch, which leaves it a pod with a name. @throws CliError */
function overridden(pod: JsonObject, overrides: string): KubernetesObject {
  const { value } = parseDocument(overrides, '--overrides');
  if (!isJsonObject(value)) {
    throw usageError('--overrides: expected a mapping with the fields to change');
  }
  const { metadata, ...fields } = patched(pod, value);
  if (!isJsonObject(metadata) || fields['kind'] !== POD.kind || fields['apiVersion'] !== POD.apiVersion) {
    throw usageError('--overrides: expected a Pod of v1 with metadata');
  }
  return { ...fields, ...POD, metadata };
}

/** @throws CliError */
function patched(object: JsonObject, patch: JsonObject): JsonObject {
  try {
    return applyMergePatch(object, patch);
  } catch (error) {
    if (error instanceof PatchError) {
      throw usageError(`--overrides: ${error.message}`);
    }
    throw error;
  }
}

/** @throws CliError */
function labelsOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [key = '', value, ...more] = pair.split('=');
      if (key === '' || value === undefined || more.length > 0) {
        throw usageError(`--labels ${text}: expected KEY=VALUE, separated by commas`);
      }
      return [key, value];
    }),
  );
}

function print(pod: KubernetesObject, { output, dryRun }: RunPodFlags): void {
  const name = objectName(PODS, pod.metadata.name ?? '');
  process.stdout.write(
    output === undefined
      ? `${name} created${dryRunText(dryRun)}\n`
      : output === 'name'
        ? `${name}\n`
        : dataText(pod, output, { pretty: true }),
  );
}

// `portcullis scaffold policy`: the files of a new policy.
import { Command, InvalidArgumentError, Option } from 'commander';
import { programName } from '../program-name.ts';
import { celFiles, groupFiles } from './cel-files.ts';
import {
  isGroupType,
  LANGUAGES,
  planPolicy,
  POLICY_TYPES,
  type PlanFlags,
  type PolicyPlan,
  type PolicyType,
} from './policy-plan.ts';
import { buildCommands, regoFiles } from './rego-files.ts';
import { writeFiles } from './write-files.ts';

interface ScaffoldFlags extends PlanFlags {
  readonly output?: string;
  readonly force?: true;
}

export function policyCommand(): Command {
  return new Command('policy')
    .description('write a new policy with its tests into a folder')
    .argument('<name>', 'the name of the policy')
    .addOption(
      new Option('-t, --type <kind>', 'kind of the policy, or its short name: cap, ap, capg, apg')
        .choices(Object.values(POLICY_TYPES))
        .default('ClusterAdmissionPolicy')
        .argParser(policyType),
    )
    .addOption(
      new Option(
        '-l, --language <language>',
        'cel needs no build; rego answers reviews, as for plain OPA; gatekeeper is Rego with a rule violation',
      )
        .choices([...LANGUAGES])
        .default('cel'),
    )
    .option('--mutating', 'a policy that changes objects')
    .option('--resource <resource>', 'the resource that the policy is for', 'pods')
    .option('-n, --namespace <name>', 'namespace of a policy of type ap or apg (default: default)')
    .option('-o, --output <folder>', 'folder for the files (default: one named as the policy)')
    .option('--force', 'replace files that exist')
    .addHelpText(
      'after',
      `
The policy asks for a label: change it to what you need. Its tests pass at once, in
Rego after a build.

Examples:
  portcullis scaffold policy owner-label
  portcullis scaffold policy owner-label --type ap -n shop --resource deployments
  portcullis scaffold policy owner-label --language rego`,
    )
    .action(scaffoldPolicy);
}

async function scaffoldPolicy(name: string, flags: ScaffoldFlags): Promise<void> {
  const plan = planPolicy(name, flags);
  const folder = flags.output ?? name;
  const paths = await writeFiles(folder, filesOf(plan), flags.force === true);
  process.stdout.write(`${paths.map((path) => `Wrote ${path}\n`).join('')}\n${nextSteps(plan, folder)}`);
}

function filesOf(plan: PolicyPlan): ReadonlyMap<string, string> {
  if (plan.language !== 'cel') {
    return regoFiles(plan, plan.language);
  }
  return isGroupType(plan.type) ? groupFiles(plan) : celFiles(plan);
}

function nextSteps({ language }: PolicyPlan, folder: string): string {
  const program = programName();
  const build = language === 'cel' ? [] : buildCommands(language);
  const commands = [
    `cd ${quoted(folder)}`,
    ...build.map((command) => command.replace(/^portcullis\b/, program)),
    `${program} test`,
    // The module of a policy in Rego is a file in this folder, which a cluster would not find.
    language === 'cel' ? `${program} apply -f policy.yaml` : `${program} start --policies policy.yaml`,
  ];
  return `Next:\n${commands.map((command) => `  ${command}\n`).join('')}`;
}

/** A path as a word of a shell. */
function quoted(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}

function policyType(text: string): PolicyType {
  const found = Object.entries(POLICY_TYPES).find(([short, kind]) =>
    [short, kind.toLowerCase()].includes(text.toLowerCase()),
  );
  if (found === undefined) {
    throw new InvalidArgumentError(`Allowed choices are ${Object.keys(POLICY_TYPES).join(', ')}.`);
  }
  return found[1];
}

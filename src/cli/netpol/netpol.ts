// `portcullis netpol`: what network providers do with NetworkPolicies.
import { Command } from 'commander';
import { checkCommand } from './check.ts';
import { conformanceCommand } from './conformance.ts';
import { explainCommand } from './explain.ts';
import { matrixCommand } from './matrix.ts';
import { whatIfCommand } from './what-if.ts';

export function netpolCommand(): Command {
  return new Command('netpol')
    .description('say which network provider does what NetworkPolicies say, and what it does instead')
    .addHelpText(
      'after',
      `
Examples:
  portcullis netpol check -f policies/ --provider cilium@1.15.4
  portcullis netpol explain -f policy.yaml --provider ovn-kubernetes@1.3.0
  portcullis netpol what-if -f policies/ --provider cilium@1.15.4 --to calico@3.28
  portcullis netpol matrix`,
    )
    .addCommand(checkCommand())
    .addCommand(conformanceCommand())
    .addCommand(explainCommand())
    .addCommand(matrixCommand())
    .addCommand(whatIfCommand());
}

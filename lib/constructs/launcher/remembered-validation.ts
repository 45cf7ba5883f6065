import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  CloudFormationValidatePlugin,
  type IPolicyValidationContext,
  type PolicyValidationPluginReport,
  type PolicyValidationStack,
} from 'aws-cdk-lib';

/** Stands for the template's path in a kept report: the folder of the next synthesis may be another one. */
const TEMPLATE_PATH = '<template>';

/**
 * The CDK's own template validation. It takes longer than the whole synthesis and finds the same in the same template of the
 * same Region each time, so its report is kept in `folder` and read from there until the template or the validator changes.
 * Findings are kept with it: they come back until they are fixed.
 */
export class RememberedValidation extends CloudFormationValidatePlugin {
  constructor(private readonly folder: string) {
    super();
  }

  public override validate(context: IPolicyValidationContext): PolicyValidationPluginReport {
    const reports = context.stackTemplates.map((stack) => this.reportOf(stack, context));
    return {
      success: reports.every(({ success }) => success),
      violations: reports.flatMap(({ violations }) => violations),
    };
  }

  private reportOf(stack: PolicyValidationStack, context: IPolicyValidationContext): PolicyValidationPluginReport {
    const file = path.join(this.folder, `${this.fingerprint(stack)}.json`);
    const known = read(file);
    if (known) return JSON.parse(known, (_, value) => (value === TEMPLATE_PATH ? stack.templatePath : value));
    const report = super.validate({ ...context, stackTemplates: [stack], templatePaths: [stack.templatePath] });
    write(
      file,
      JSON.stringify(report, (_, value) => (value === stack.templatePath ? TEMPLATE_PATH : value)),
    );
    return report;
  }

  private fingerprint({ templatePath, stackConstructPath, accountId, region }: PolicyValidationStack): string {
    const place = JSON.stringify([this.version, stackConstructPath, accountId, region]);
    return createHash('sha256').update(place).update(readFileSync(templatePath)).digest('hex');
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** A folder that cannot be written costs the time of the next validation and nothing else. */
function write(file: string, text: string): void {
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    const partial = `${file}.${process.pid}`;
    writeFileSync(partial, text);
    renameSync(partial, file);
  } catch {}
}

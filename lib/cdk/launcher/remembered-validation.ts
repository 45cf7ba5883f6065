import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  CloudFormationValidatePlugin,
  type IPolicyValidationContext,
  type PolicyValidationPluginReport,
  type PolicyValidationStack,
} from 'aws-cdk-lib';
import { replaceFile } from '../../shared/local/replace-file';

/** Placeholder for the template's path in a stored report, because the next synthesis may use another folder. */
const TEMPLATE_PATH = '<template>';

/**
 * The CDK's own template validation. It takes longer than the whole synthesis and always has the same result for the same template and
 * Region, so its report is stored in `folder` and reused until the template or the validator changes. The stored report includes its
 * findings, which are reported until they are fixed.
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

/** If the folder cannot be written, the only effect is that the next validation runs again. */
function write(file: string, text: string): void {
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    replaceFile(file, text);
  } catch {}
}

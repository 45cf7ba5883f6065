import { plainLine } from '../../core/config/formats/plain-text';
import { cardFile, type ModelFacts } from './model-facts';

/**
 * The model card of a model package as JSON text for `ModelCard.ModelCardContent`, according to the "model package model card schema" in
 * https://docs.aws.amazon.com/sagemaker/latest/dg/model-registry-details.html, read 2026-11-23. The schema allows no additional properties
 * and limits the length of every text; test/fixtures/registry contains it.
 */
export function registryCard(facts: ModelFacts): string {
  const [run] = facts.lineage.runs;
  const { checkpoint } = facts.lineage;
  return JSON.stringify({
    model_overview: { model_artifact: [plainLine(facts.weights.uri, 1024)] },
    intended_uses: { risk_rating: 'Unknown' },
    training_details: {
      training_observations: plainLine(
        `Run ${facts.runId} in ${facts.attempts} ${facts.attempts === 1 ? 'attempt' : 'attempts'} on ${facts.instances || 'unknown instances'}`,
        1024,
      ),
      training_job_details: {
        training_datasets: (run?.data.channels ?? []).slice(0, 15).map(({ source }) => plainLine(source, 1024)),
        training_environment: { container_image: run?.image ? [plainLine(run.image, 1024)] : [] },
        training_metrics: metrics(facts),
        hyper_parameters: facts.training
          .slice(0, 50)
          .map(([name, value]) => ({ name: plainLine(name, 255), value: plainLine(value, 255) }))
          .filter(({ name, value }) => name !== '' && value !== ''),
      },
    },
    evaluation_details: evaluation(facts),
    additional_information: {
      caveats_and_recommendations: plainLine(caveats(facts), 2048),
      custom_details: details({
        run: facts.runId,
        checkpoint: checkpoint?.uri,
        data_digest: run?.data.digest,
        code_digest: run?.code.sha256,
        configuration_digest: run?.configHash,
        driver_digest: run?.driverHash,
        efa: facts.efa,
        jobs: facts.jobs.join(' '),
        parents: run?.parents.map(({ source }) => source).join(' '),
      }),
    },
  });
}

const caveats = ({ weights }: ModelFacts): string =>
  `To be filled in by people: licence, intended uses, limitations, risk rating. The whole card: ${weights.uri}${cardFile(weights)}`;

function metrics({ step, tokens, loss, gpuHours, spendUsd, listPriceUsd, goodput }: ModelFacts) {
  const known: Record<string, number | null | undefined> = {
    steps: step,
    tokens,
    loss: loss?.last,
    gpu_hours: gpuHours,
    usd_booked: spendUsd,
    usd_list_price: listPriceUsd,
    goodput,
  };
  return Object.entries(known).flatMap(([name, value]) =>
    typeof value === 'number' && Number.isFinite(value) ? [{ name, value }] : [],
  );
}

function evaluation({ evaluation: found }: ModelFacts) {
  if (!found) return [];
  const metric = { name: 'loss', type: 'number', value: found.loss, notes: `after step ${found.step}` };
  return [{ name: 'evaluation channel', metric_groups: [{ name: 'loss', metric_data: [metric] }] }];
}

const details = (given: Record<string, string | null | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(given).flatMap(([name, value]) => (value ? [[name, plainLine(value, 1024)]] : [])));

/** Limits of the schema are in characters. */

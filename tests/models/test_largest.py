"""The largest numbers and their first positions."""

import pytest
import torch

from cdmae.models.largest import largest


@pytest.mark.parametrize("count", [1, 7, 256, 300])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.int16])
def test_it_equals_torch_max_and_takes_the_first_of_equal_numbers(count, kind):
    values = torch.randint(-9, 9, (3, count, 5)).to(kind)
    found, position = largest(values)
    assert torch.equal(found, values.amax(1))
    expected = [[row.index(max(row)) for row in text] for text in values.transpose(1, 2).tolist()]
    assert position.tolist() == expected


def test_a_position_can_be_read_where_the_largest_is_not_a_number():
    values = torch.full((1, 4, 2), torch.nan)
    found, position = largest(values)
    assert found.isnan().all()
    assert position.tolist() == [[3, 3]]

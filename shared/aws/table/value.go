package table

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"punctual/shared/fault"
	"punctual/shared/item"
)

// encodeValue turns one of our values into DynamoDB's; no other types exist in package item.
func encodeValue(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}, nil
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}, nil
	}
	return nil, fault.New(fault.Invalid, nil, "a value is a %T: string and int64 are known", v)
}

// decodeValue is the way back; false for a type that we never write, fractions included.
func decodeValue(v types.AttributeValue) (any, bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, true
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		return n, err == nil
	}
	return nil, false
}

func encode(i item.Item) (map[string]types.AttributeValue, error) {
	attributes := make(map[string]types.AttributeValue, len(i))
	for name, v := range i {
		a, err := encodeValue(v)
		if err != nil {
			return nil, err
		}
		attributes[name] = a
	}
	return attributes, nil
}

// decode returns the item, nil for the absent one. What has a type of another writer is left
// out: the item's reader misses it and calls the item undecodable.
func decode(attributes map[string]types.AttributeValue) item.Item {
	if len(attributes) == 0 {
		return nil
	}
	i := make(item.Item, len(attributes))
	for name, a := range attributes {
		if v, ok := decodeValue(a); ok {
			i[name] = v
		}
	}
	return i
}
